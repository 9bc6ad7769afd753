"""Claude Code's auto mode: which tool calls of an answer may run. Rules decide what they can, a model the rest."""
