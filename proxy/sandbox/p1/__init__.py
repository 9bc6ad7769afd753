"""The simulated ChatGPT subscription (p1)."""
