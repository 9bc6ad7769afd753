"""The account of P5."""
