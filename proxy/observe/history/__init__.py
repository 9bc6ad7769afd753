"""What requests did over time, in one SQLite file: who wrote it (`writer.py`), its tables (`schema.py`), what is read
of it (`usage.py`, `conversations.py`, `limits.py`), how the server asks (`queries.py`), and a month that never was
(`demo.py`)."""
