"""The small model behind the simulated upstreams: how it reads a prompt, and what it replies."""
