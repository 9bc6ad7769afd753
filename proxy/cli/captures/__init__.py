"""`captures`: lists, shows, compares and replays captured requests, for debugging.

`command` has the row; each of its actions is a `Command` of its own in `looking`, `comparing` and `replaying`.
"""
