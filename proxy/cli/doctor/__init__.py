"""`doctor`: finds the faults of a set-up, each with its cure.

finding.py   the input of a check, and its findings
command.py   the table of checks, and the command
report.py    the findings on a terminal and as JSON
bundle.py    an archive for a bug report, without secrets
live.py      one tiny conversation with each service, for a user with an account

The other modules hold the checks, one group each.
"""
