"""The simulated P5: Cursor's agent service over HTTP/1.1, with its sign-in."""
