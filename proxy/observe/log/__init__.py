"""The structured log: files, records, redaction."""
