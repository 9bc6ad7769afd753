"""The three wires as a server sees them, whoever speaks them: checks, answers and faults."""
