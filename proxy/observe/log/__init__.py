"""The structured log.

file_log.py    a queue and the thread that writes records and failed answers
storage.py     their files: rotation, bounds, modes
terminal.py    the copy on stderr
stdlib_log.py  instead of all that, the `logging` of a program that embeds the proxy
"""
