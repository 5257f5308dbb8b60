"""Messages, blocks, bindings, ids and reports."""
