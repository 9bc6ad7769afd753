"""The simulated OpenCode Go (p4)."""
