"""Mutations of the storage of arguments, and of the memory for large ones while they arrive."""

from tests.teeth.mutations.mutation import Mutation

MEMORY = "tests/adapters/test_memory.py"
LONG = "tests/adapters/test_long_arguments.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "long arguments: malformed arguments become a string before they are written",
        "actors/adapters/partial.py:PartialCall.block",
        "self.pieces.literal()",
        "quote(self.pieces.whole())",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: a large object is written in one step",
        "actors/adapters/base.py:Decoder.arguments_text",
        "LongJson(value)",
        "argument_text(value)",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: a long text becomes a string when it is read",
        "actors/adapters/wire.py:argument_text",
        "return value",
        "return str(value)",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: the complete text is searched for a repeated object",
        "actors/adapters/settling.py:join_arguments",
        "not _may_be_object(parts)",
        "False",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: a long text is not searched for a repeated object",
        "actors/adapters/settling.py:join_arguments",
        "not _may_be_object(parts)",
        "True",
        (LONG,),
    ),
    Mutation(
        "long arguments: a fragment cut by a slice is compared only up to the cut",
        "actors/adapters/partial.py:Pieces.remainder_of",
        "done, at = done + size, at + size",
        "done, at = len(piece), at + size",
        (LONG,),
    ),
    Mutation(
        "long arguments: copies of a call are distinguished by their beginning",
        "actors/adapters/settling.py:_canonical_arguments",
        "digest.update(piece.encode())",
        "digest.update(piece.encode())\nbreak",
        (LONG,),
    ),
    Mutation(
        "long arguments: deltas of replaced arguments are added to the new ones",
        "actors/adapters/partial.py:add_long_text",
        "LongTextDeltas(part.delta_event, kept, first, len(kept))",
        "LongTextDeltas(part.delta_event, kept, first, first)",
        (LONG,),
    ),
)
