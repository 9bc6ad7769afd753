"""Judges which tool calls of an answer may run in Claude Code's auto mode: rules decide what they can, a model the
rest."""
