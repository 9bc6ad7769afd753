"""The parts of an answer over the Responses API: one module for each kind of output item, and what they share."""
