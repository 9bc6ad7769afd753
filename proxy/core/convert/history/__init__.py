"""The conversation part of a request, a module for each upstream API that has too much of it for its direction."""
