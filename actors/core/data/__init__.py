"""Handle JSON, text, images and sequences as plain data."""
