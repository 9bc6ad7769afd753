"""The wire of P5: protobuf messages as tables, and the envelopes that carry them."""
