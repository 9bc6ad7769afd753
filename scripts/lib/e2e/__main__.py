"""`python -m e2e`, what `scripts/e2e` runs. Forked processes do not import a module of this name again."""

import asyncio
import sys

from e2e.run import main

sys.exit(asyncio.run(main(sys.argv[1:])))
