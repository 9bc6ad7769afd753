"""Captures are written in a process of their own: redaction and files cost more than the request.

queued.py      the captures of the program: calls on the event loop become messages
channel.py     the bounded queue and the thread that hands the messages on
worker.py      the process
writer.py      messages to artifacts
streams.py     what is kept of a stream
files.py       the folder of one capture; modes and quotas
"""
