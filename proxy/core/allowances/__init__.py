"""The allowances of accounts and what is left of them, as values that services report and users see."""
