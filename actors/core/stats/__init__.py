"""Counters of asks, requests and tools."""
