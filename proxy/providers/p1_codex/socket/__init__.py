"""P1 over WebSockets: rules as values, and the few modules that do I/O by them."""
