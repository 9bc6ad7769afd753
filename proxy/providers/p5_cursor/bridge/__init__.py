"""Tools of the client that pause a run: the call, its result, and the waiting runs."""
