"""Mistakes in how the arguments of a call are kept, and in how much memory large ones take while they arrive."""

from tests.teeth.mutations.mutation import Mutation

MEMORY = "tests/adapters/test_memory.py"
LONG = "tests/adapters/test_long_arguments.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "long arguments: malformed ones become a string before they are written",
        "actors/adapters/partial.py:PartialCall.block",
        "self.pieces.literal()",
        "quote(self.pieces.whole())",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: a large object is written at once",
        "actors/adapters/base.py:Decoder.arguments",
        "LongJson(value)",
        "argument_text(value)",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: a long text becomes a string when it is taken",
        "actors/adapters/wire.py:argument_text",
        "return value",
        "return str(value)",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: all of a long text is looked at for an object that was sent again",
        "actors/adapters/settling.py:join_arguments",
        "not _may_be_object(parts)",
        "False",
        (MEMORY,),
    ),
    Mutation(
        "long arguments: none of a long text is looked at for an object that was sent again",
        "actors/adapters/settling.py:join_arguments",
        "not _may_be_object(parts)",
        "True",
        (LONG,),
    ),
    Mutation(
        "long arguments: a fragment that is cut by a slice is not compared behind the cut",
        "actors/adapters/partial.py:Pieces.rest_of",
        "done, at = done + size, at + size",
        "done, at = len(piece), at + size",
        (LONG,),
    ),
    Mutation(
        "long arguments: copies of a call are told apart by their beginning",
        "actors/adapters/settling.py:_arguments",
        "digest.update(piece.encode())",
        "digest.update(piece.encode())\nbreak",
        (LONG,),
    ),
    Mutation(
        "long arguments: deltas of arguments that are replaced are those of the new ones",
        "actors/adapters/partial.py:take_long",
        "LongTextDeltas(part.delta, kept, first, len(kept))",
        "LongTextDeltas(part.delta, kept, first, first)",
        (LONG,),
    ),
)
