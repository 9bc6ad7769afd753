"""Counts of everything that happened since the start, in the text format of Prometheus."""
