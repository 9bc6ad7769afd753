"""The small model behind the simulated upstreams: what it understands of a prompt, and what it replies."""
