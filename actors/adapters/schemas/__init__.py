"""Rewrite the JSON Schemas of tools and answers to the subset that each provider accepts."""
