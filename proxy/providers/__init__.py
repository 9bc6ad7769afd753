"""The model services, one folder each, and what they share."""
