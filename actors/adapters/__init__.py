"""Encode requests and decode answers without I/O: one module or folder per wire family, and their shared code."""
