"""Strict provider servers and their rules. They import nothing else of this package."""
