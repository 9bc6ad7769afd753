"""`captures`: what was kept of requests, for those who look for a fault.

`command` has the row; each of its actions is a `Command` of its own in `looking`, `comparing` and `replaying`.
"""
