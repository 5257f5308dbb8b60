"""Encode requests and decode answers without I/O, in one module or folder per wire family, and in shared modules."""
