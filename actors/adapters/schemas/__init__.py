"""Rewrite the JSON Schemas of tools and answers so that they use only the subset that a provider accepts."""
