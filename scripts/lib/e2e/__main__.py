"""`python -m e2e`, what `scripts/e2e` runs. Forked processes do not import a module of this name again."""

import asyncio
import signal
import sys

from e2e.run import main

signal.signal(signal.SIGTERM, signal.default_int_handler)  # clients and proxies end with it
sys.exit(asyncio.run(main(sys.argv[1:])))
