"""Counting tokens, with a vocabulary and without."""
