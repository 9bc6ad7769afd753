"""Reads request bodies in JSON: bounds the number of values, and reads large ones without blocking other threads."""
