"""The monitor on a terminal. All but `display` is pure: it makes lines of a snapshot, the view, a size and a time."""
