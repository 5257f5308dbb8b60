"""Define the render state of a lane, the mapping of call ids and tool names, and the report of a render."""
