"""Captures: what a request said and got, at each of its stations, in files for whoever looks for a fault.

Off by default, because they hold prompts and answers.
"""
