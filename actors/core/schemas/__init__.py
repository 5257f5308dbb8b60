"""JSON Schemas, and the validation and repair of tool arguments."""
