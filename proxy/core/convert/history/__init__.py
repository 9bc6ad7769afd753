"""Converts the conversation of a request, in a module for each upstream API that needs much code for it."""
