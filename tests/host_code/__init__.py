"""Functions and objects of the program that raise when the runtime calls them."""
