"""Why an upstream had to read again what it had read before: prompts are compared block by block, as digests.

    fingerprint.py    a request as digests and weights of its blocks; nothing of its text
    compare.py        what two of them have in common, and in words where they part
    judge.py          what could have come from the cache, what did, and why not more
    memory.py         the newest requests of each session and agent

Digests are keyed by the process and never leave it.
"""
