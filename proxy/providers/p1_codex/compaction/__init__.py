"""The backend's own compaction around an ordinary turn."""
