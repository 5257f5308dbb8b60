"""Run a turn as a generator, with its batches of calls, its limits and its output."""
