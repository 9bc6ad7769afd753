"""What the accounts of providers share on the command line."""
