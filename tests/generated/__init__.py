"""Generate conversations with their ledgers and events, as input for tests of the pure core."""
