"""Define the values of a conversation: messages, blocks, bindings, ids and import reports."""
