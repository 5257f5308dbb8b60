"""How the dialects write that are not the two first ones. One module a family."""
