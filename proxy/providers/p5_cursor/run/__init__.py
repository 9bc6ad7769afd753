"""One run: its opening, its signs of life, and the answers to its requests."""
