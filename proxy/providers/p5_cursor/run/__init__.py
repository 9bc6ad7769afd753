"""One run: what is said to open it, how it is kept alive, and what its requests are answered with."""
