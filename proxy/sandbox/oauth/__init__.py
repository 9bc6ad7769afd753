"""What simulated sign-in services share: their endpoint, its tokens, and JWTs."""
