"""Derive from a session's log its state, lanes, phases, stream events and export."""
