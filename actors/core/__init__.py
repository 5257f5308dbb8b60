"""Values, events and rules. Pure: no clock, no event loop, no network."""
