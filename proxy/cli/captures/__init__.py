"""`captures`: what was kept of requests, for whoever looks for a fault. `command` has the row; each of its actions is a
`Command` of its own, in the file that is named for it."""
