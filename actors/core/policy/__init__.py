"""Decide which backend serves a turn and when requests are sent."""
