"""Sign-in and usage of p2."""
