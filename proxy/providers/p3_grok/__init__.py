"""P3: the Grok subscription, spoken to as the vendor's own command-line client does."""
