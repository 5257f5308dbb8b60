"""One more of each kind, planted into a copy of the tree: which places tell that they do not know it?"""
