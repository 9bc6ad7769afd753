"""P2: the Kimi Code subscription, spoken to as its own command-line client does."""
