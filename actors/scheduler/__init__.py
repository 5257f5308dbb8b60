"""Schedule the tool calls of a session, and run them in tasks and threads."""
