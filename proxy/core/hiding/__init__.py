"""Hiding: what logs, captures, reports and error messages must not show.

keys.py          names of what is secret, and from which level each is hidden
texts.py         what credentials, persons and data look like within texts
encoded_data.py  pictures and other base64 within texts
secret.py        credentials that are alive in this process, found wherever somebody quotes them
walk.py          one walk over nested values, with a level
"""
