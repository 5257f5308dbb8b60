"""The conversation, its size, its rewind points and its compaction."""
