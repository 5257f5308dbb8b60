"""MCP servers that tests run as child processes, made with the SDK."""
