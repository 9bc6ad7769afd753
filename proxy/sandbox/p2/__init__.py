"""The simulated Kimi Code (p2)."""
