"""A turn as a generator, its batch of calls, its limits, and its output."""
