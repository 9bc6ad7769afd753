"""Captures: what a request said and got, at each of its stations, in files for debugging.

Off by default, because they hold prompts and answers.
"""
