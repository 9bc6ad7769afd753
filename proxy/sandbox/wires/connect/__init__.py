"""Connect over HTTP/1.1: envelopes, errors, and protobuf by field numbers."""
