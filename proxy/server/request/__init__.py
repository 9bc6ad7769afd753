"""Everything about a request except serving it: its admission, its candidates, its reports."""
