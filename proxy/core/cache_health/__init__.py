"""Why an upstream had to read again what it had read before: prompts are compared block by block, as digests.

    fingerprint.py    a request as digests and weights of its blocks; nothing of its text
    judge.py          what two of them have in common, what came from the cache, and in words why not more
    memory.py         the newest requests of each session and agent

Digests are keyed by the process and never leave it.
"""
