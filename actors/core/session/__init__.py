"""A session as the fold of its log: its state, its phases, and its export."""
