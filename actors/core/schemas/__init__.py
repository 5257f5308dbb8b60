"""JSON Schemas, and the arguments of tool calls against them."""
