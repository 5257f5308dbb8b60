"""Where tools run: one call from its approval to its end, in its order, in a thread, or in quarantine."""
