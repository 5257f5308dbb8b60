"""Provide strict servers that imitate providers and enforce their rules. Imports no other package of `actors`."""
