"""Define the events that callers receive, and their JSON format."""
