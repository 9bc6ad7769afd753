"""Several accounts of one provider: which of them serves a request."""
