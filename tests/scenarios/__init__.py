"""Fifty ways in which a tool-calling conversation goes wrong, each as a test (`table.py`)."""
