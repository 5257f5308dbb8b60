"""The transcript rules of each provider family and vendor, as data."""
