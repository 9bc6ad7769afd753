"""The messages of the service as data; `wire/schema.py` says how a row reads."""
