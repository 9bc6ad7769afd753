"""End-to-end scenarios: real clients in front, the real proxy process in the middle, simulated upstreams behind."""
