"""Count asks, requests and tool calls."""
