"""Describe the request features that each model accepts, independently of its host.

`facts` defines the record, `table` contains the rows, `lookup` finds the row for a model's name, and
`actors.core.dialects.narrow` narrows the dialect of a host to one model. The renderer, the independent check and the
encoders read the narrowed dialect.
"""
