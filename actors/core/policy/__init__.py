"""Decide which backend serves a turn and when its requests are sent, and turn refusals into configuration."""
