"""Replacements of a normal answer: scripts, faults, and the player of both."""
