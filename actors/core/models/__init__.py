"""Describe the request features that each model accepts, independently of its host.

`facts` defines the record, and `table` contains the rows. `actors.core.dialects.narrow` finds the row for a model's
name, and narrows the dialect of a host to the model. The renderer, the independent check and the encoders read the
narrowed dialect.
"""
