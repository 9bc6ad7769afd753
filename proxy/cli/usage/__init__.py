"""The command `usage`, and what it draws."""
