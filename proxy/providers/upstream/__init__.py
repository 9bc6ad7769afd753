"""The way from a provider to its service: attempts, retries, transport, one adapter a wire."""
