"""Explains why an upstream had to read a prompt again: compares prompts block by block, as digests.

    fingerprint.py    a request as digests and weights of its blocks, without its text
    judge.py          what two requests have in common, what came from the cache, and the reason why not more
    memory.py         the newest requests of each session and agent

Digests are keyed by the process and never leave it.
"""
