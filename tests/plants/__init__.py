"""Plants: add a new member of each kind to a copy of the tree, and list the places that do not report it."""
