"""The monitor on the whole terminal: of the proxy that `serve` runs, of one that runs elsewhere, and of simulated
traffic."""
