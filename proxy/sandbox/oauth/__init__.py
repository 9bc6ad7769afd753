"""The common part of simulated sign-in services: endpoint, tokens, and JWTs."""
