"""P3: the Grok subscription, called as the vendor's own command-line client calls it."""
