"""P4: OpenCode Go, one key for models of many makers on three wires."""
