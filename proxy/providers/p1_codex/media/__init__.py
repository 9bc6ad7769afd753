"""Pictures and transcripts of P1: what is sent, what comes back, and what went wrong."""
