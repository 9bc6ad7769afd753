"""A sixth provider and its simulator, as small as they may be: what `test_sixth_provider` adds by one entry each."""
