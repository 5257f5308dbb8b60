"""Fold the log of a session: its state, its lanes, its phases, its stream events and its export."""
