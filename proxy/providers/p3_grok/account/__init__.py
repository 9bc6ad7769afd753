"""Sign-in and usage of p3."""
