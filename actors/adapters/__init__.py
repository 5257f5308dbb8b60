"""Pure codecs: one folder for each wire family, and the code that they share."""
