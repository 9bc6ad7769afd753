"""The callers of a proxy that several people share: keys with names, and what each may use.

keys.py      a key as data, and the form of the file
key_file.py  the file, as it is now
meter.py     what each caller has used, and the limits
callers.py   all three, for the server
"""
