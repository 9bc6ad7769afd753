"""The native Responses passthrough."""
