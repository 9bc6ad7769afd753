"""Small changes of the source, and whether the tests notice them."""
