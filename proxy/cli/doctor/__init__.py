"""`doctor`: what is wrong with a set-up, each cause with what mends it.

finding.py   what a check is given, and what it finds
command.py   the table of checks, and the command
report.py    the findings on a terminal and as JSON
bundle.py    all of it in an archive for a bug report, without secrets
live.py      one tiny conversation with each service, for somebody with an account

The other modules hold the checks, one group each.
"""
