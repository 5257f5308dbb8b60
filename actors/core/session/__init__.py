"""Derive a session's state, lanes, phases, stream events and export from its log."""
