"""The pure core: translation, routing and accounting over plain dicts.

Nothing here performs I/O, reads a clock, draws a random number or looks at the environment: what a
function needs of those is an argument. Only the standard library is imported.
"""
