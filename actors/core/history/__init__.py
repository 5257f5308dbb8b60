"""Define the history, its size estimate, its rewind points and its compaction."""
