"""Strict provider servers and their rules. This package imports no other package of `actors`."""
