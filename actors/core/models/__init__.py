"""Describe models: the request features that one model accepts, independent of its host.

`facts` defines the record, `table` holds the rows, `lookup` finds the row of a model's name, and `narrow` narrows the
dialect of a host to one model. The renderer, the judge and the encoders read the narrowed dialect.
"""
