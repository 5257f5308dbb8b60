"""The ledger actor: it owns the record of every tool call of a session."""
