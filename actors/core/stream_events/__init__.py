"""The events that a caller sees, and their JSON form."""
