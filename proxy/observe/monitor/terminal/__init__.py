"""The monitor on a terminal. All but `display` is pure: a snapshot, what the user chose, a size and a time give
lines."""
