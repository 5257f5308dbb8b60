"""Handle JSON, text, images and sequences as plain data, without knowledge of conversations."""
