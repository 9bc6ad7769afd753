"""`service`: the proxy as a service of the operating system, which starts and ends it.

plan.py      what would be done: files, commands, and notes for the user
target.py    which program the service starts, and where its files are
systemd.py, launchd.py, windows.py    the three kinds of services
templates/   their files, but the one of launchd
command.py   the command, which shows a plan and carries it out
"""
