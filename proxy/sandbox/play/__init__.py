"""What an upstream does instead of answering normally: the script, the faults, and the player of both."""
