"""What every provider uses to reach a service: attempts, retries, transport, one adapter a wire."""
