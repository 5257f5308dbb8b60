"""Facts about models: what one model accepts in a request, whoever hosts it.

`facts` defines the record, `table` holds the rows, `lookup` finds the row of a model's name, and `narrow` narrows the
dialect of a host to one model. The renderer, the judge and the encoders read the narrowed dialect.
"""
