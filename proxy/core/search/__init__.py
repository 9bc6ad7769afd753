"""Web search for models whose service has none: what is asked, what is found, and how a conversation shows it. Pure."""
