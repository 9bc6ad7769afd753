"""Tools and their schemas: names, ids, arguments, and what upstreams demand of them."""
