"""The pure core: translation, routing and accounting over plain dicts.

Nothing here performs I/O, reads a clock, draws a random number or reads the environment: a function gets what it needs
of those as an argument. Only the standard library is imported.
"""
