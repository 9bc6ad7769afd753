"""P2: the Kimi Code subscription, called as its own command-line client calls it."""
