"""The key and the usage of p4."""
