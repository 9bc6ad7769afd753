"""Bodies of requests in JSON: how many values they may have, and large ones read without holding everybody up."""
