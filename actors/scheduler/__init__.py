"""The scheduler actor, and the execution of tool calls."""
