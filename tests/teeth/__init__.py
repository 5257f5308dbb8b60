"""Mutation tests: deliberate mistakes, and the tests that must detect them. Run `python -m tests.teeth`."""
