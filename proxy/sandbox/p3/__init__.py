"""The simulated P3: the API behind the Grok subscription, and its sign-in service."""
