"""The simulated upstream of P5."""
