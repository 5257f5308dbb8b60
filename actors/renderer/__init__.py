"""The renderer actor: it owns the lanes of a session."""
