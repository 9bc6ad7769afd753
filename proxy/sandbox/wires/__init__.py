"""The three wires from the server's side, for any upstream: checks, answers and faults."""
