"""Run a turn as a generator: its steps, its batches of calls, its limits, and its output."""
