"""Cases for the proxy, mutated at every level, one after the other."""
