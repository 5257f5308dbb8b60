"""The transcript that a render writes, the ids and names in it, and the report of the render."""
