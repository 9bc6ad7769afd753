"""What the proxy costs: CPU a request beside a pipe of bytes, cold start, memory."""
