"""What is left of the allowances of the accounts, as values: read from what a service tells, kept, shown."""
