"""Another model in place of one whose provider cannot serve now, where a setting declares it.

chain.py    what is left for one request
onward.py   serving it again
native.py   answers that are passed on as they are
"""
