"""Functions of the program that uses a runtime, each of which raises whatever it likes."""
