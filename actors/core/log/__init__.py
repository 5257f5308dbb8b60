"""Define the events of a log and their binary records."""
