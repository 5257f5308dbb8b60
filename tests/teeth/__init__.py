"""Mistakes made on purpose, and the tests that must notice: run `python -m tests.teeth`."""
