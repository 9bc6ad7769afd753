"""Finds, compares and removes captures. Nothing here follows a link."""
