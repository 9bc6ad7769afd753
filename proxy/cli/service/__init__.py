"""`service`: the proxy as a service of the operating system, started and ended by that.

plan.py      what would be done: files, commands, and what the user should know
target.py    which program the service starts, and where its files are
systemd.py, launchd.py, windows.py    the three kinds of services
command.py   the command, which shows a plan and does it
"""
