"""The events of a log, and their records."""
