"""Sign-in, usage and rate limits of p1."""
