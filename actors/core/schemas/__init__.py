"""Handle JSON Schemas, and validate and repair tool arguments."""
