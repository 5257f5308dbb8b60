"""The scheduler actor, and the execution of tool calls in tasks and threads."""
