"""`report` and `history`: what the history tells, on the terminal and as data, and its removal."""
