"""The simulated Grok subscription (p3): the service behind the vendor's command-line client."""
