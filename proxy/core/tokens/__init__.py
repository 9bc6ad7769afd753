"""Counts tokens, with a vocabulary and without."""
