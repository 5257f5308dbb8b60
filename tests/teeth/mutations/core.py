"""Mistakes in the ledger, the turn, the log and the other parts of the pure core."""

from tests.teeth.mutations.mutation import Mutation

CONSERVATION = "tests/core/test_conservation.py"
LEDGER = "tests/core/test_ledger.py"
TURN = "tests/core/test_turn.py"
STATE = "tests/core/test_state.py"
PAIRING = "tests/core/test_pairing.py"
IMPORTS = "tests/adapters/test_import_pairing.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "pairing: a late result goes to a newer call although an older one is open",
        "actors/core/door/pairing.py",
        "if not taken and not older.is_open:",
        "if not taken:",
        (PAIRING, IMPORTS),
    ),
    Mutation(
        "pairing: a second result of an id with several calls goes to the latest call",
        "actors/core/door/pairing.py",
        "is_only = len(calls) == 1 and not older",
        "is_only = len(calls) == 1",
        (PAIRING,),
    ),
    Mutation(
        "pairing: the name of a tool decides nothing",
        "actors/core/door/pairing.py",
        "if len(made) > 1 or (made and",
        "if (made and",
        (PAIRING, IMPORTS),
    ),
    Mutation(
        "pairing: calls of one message take results although one is missing",
        "actors/core/door/pairing.py",
        "if len(pool) == count:",
        "if pool:",
        (PAIRING,),
    ),
    Mutation(
        "events: an image that a tool returned is not kept",
        "actors/core/events.py",
        "self.content, None, True, self.media)",
        "self.content, None, True, ())",
        ("tests/core/test_ledger.py", "tests/test_media_in_results.py"),
    ),
    Mutation(
        "returned: each attachment may be as large as all together",
        "actors/core/returned.py",
        "room -= len(item.data) + len(item.url)",
        "room -= 0",
        ("tests/core/test_returned.py",),
    ),
    Mutation(
        "ledger: of two real completions the last wins",
        "actors/core/ledger.py",
        "    if known.end is None:",
        "    if True:",
        (LEDGER,),
    ),
    Mutation(
        "ledger: a cancel takes back a completion",
        "actors/core/ledger.py",
        "return replace(known, cancelled=known.cancelled or reason)",
        "return replace(known, cancelled=known.cancelled or reason, end=None)",
        (LEDGER,),
    ),
    Mutation(
        "ledger: the same completion again is a duplicate",
        "actors/core/ledger.py",
        "    if new == result_of(known.end) or new in known.duplicates:\n        return known, 0\n",
        "",
        (LEDGER,),
    ),
    Mutation(
        "ledger: a seal replaces a completion",
        "actors/core/ledger.py",
        "return known if known.end is not None or known.sealed is not None else replace",
        "return replace",
        (f"{LEDGER}::test_between_a_completion_and_a_seal_the_first_wins",),
    ),
    Mutation(
        "ledger: a result after the seal takes the synthetic one's place",
        "actors/core/events.py",
        "None if self.end is None or self.sealed is not None else",
        "None if self.end is None else",
        (f"{LEDGER}::test_between_a_completion_and_a_seal_the_first_wins",),
    ),
    Mutation(
        "content: completeness goes before an error",
        "actors/core/content.py",
        '        if self.error_json is not None:\n            return "error"\n'
        '        if self.is_complete or self.media:\n            return "complete"\n',
        '        if self.is_complete or self.media:\n            return "complete"\n'
        '        if self.error_json is not None:\n            return "error"\n',
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "content: a result that is there waits for its completeness",
        "actors/core/content.py",
        "        if self.is_complete or self.media:\n",
        "        if self.is_complete is False:\n"
        '            return "pending"\n'
        "        if self.is_complete or self.media:\n",
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "content: a result that its source called incomplete is none",
        "actors/core/content.py",
        "        if self.is_complete or self.media:\n",
        '        if self.is_complete is False:\n            return "pending"\n'
        "        if self.is_complete or self.media:\n",
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "lane: a rebuild renders more than the request had",
        "actors/core/state.py",
        "sent.history.upto(sent.lengths[-1])",
        "sent.history",
        (STATE,),
    ),
    Mutation(
        "table: an older version sees what came later",
        "actors/core/table.py",
        "        self._undo = {key: live.get(key, UNSET) for key in changes}",
        "        self._undo = {}",
        ("tests/core/test_history.py",),
    ),
    Mutation(
        "codec: JSON that is none is read",
        "actors/core/codec.py",
        "        if text.startswith(begins) and (text.isascii() or text.decode()):\n            return text\n",
        "        return text\n",
        ("tests/core/test_codec.py",),
    ),
    Mutation(
        "codec: a message is read over",
        "actors/core/codec.py",
        "    *(*_BEGINS, *_PACKED, Binding,",
        "    *(*_BEGINS, Binding,",
        ("tests/core/test_codec.py",),
    ),
    Mutation(
        "codec: a field that has a default may be missing, or written otherwise",
        "actors/core/codec.py",
        "    if _ENCODER.encode(form) != data:",
        '    if _ENCODER.encode(form) == b"":',
        ("tests/core/test_codec.py",),
    ),
    Mutation(
        "turn: one round too many",
        "actors/core/turn.py",
        "self._end.rounds >= self._bounds.rounds or",
        "self._end.rounds > self._bounds.rounds or",
        (TURN,),
    ),
    Mutation(
        "turn: corrections without end",
        "actors/core/turn.py",
        " or self._misses >= self._bounds.corrections:",
        ":",
        (TURN,),
    ),
    Mutation(
        "turn: refused reasoning costs the whole structure",
        "actors/core/turn.py",
        'self._rewritten = "bare" if unfit.reasoning and self._rewritten == "no" else "plain"',
        'self._rewritten = "plain"',
        (TURN,),
    ),
    Mutation(
        "turn: a refused transcript is rewritten again and again",
        "actors/core/turn.py",
        '        if self._rewritten == "plain":\n',
        "        if False:\n",
        (TURN,),
    ),
    Mutation(
        "turn: calls of an answer that was cut are forgotten",
        "actors/core/turn.py",
        'return self._close("failed", outcome.why, outcome.message, outcome.elsewhere)',
        'return self._close("failed", outcome.why, None, outcome.elsewhere)',
        (TURN,),
    ),
    Mutation(
        "batch: malformed arguments are run as none",
        "actors/core/batch.py",
        "    if call.is_malformed:",
        "    if False:",
        ("tests/core/test_batch.py",),
    ),
    Mutation(
        "routing: a member that failed is tried again",
        "actors/core/routing.py",
        "    left = [name for name in order if name not in tried]\n",
        "    left = list(order)\n",
        ("tests/core/test_routing.py",),
    ),
    Mutation(
        "routing: a held switch is applied to whatever its target has become",
        "actors/core/routing.py",
        "        return SwitchFailed(held, str(error))",
        "        del error",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "ledger: a denial is no reason",
        "actors/core/events.py",
        'return "denied" if type(self.end) is Denied else None',
        "return None",
        (LEDGER,),
    ),
    Mutation(
        "arguments: what reads its schema twice costs nothing",
        "actors/core/schema_cost.py",
        "            size *= 2",
        "            size += 0",
        ("tests/core/test_arguments.py",),
    ),
    Mutation(
        "arguments: what is wrong is told whatever the work",
        "actors/core/schema_cost.py",
        "            return not self._is_recursive or",
        "            return True or",
        ("tests/core/test_arguments.py",),
    ),
    Mutation(
        "arguments: references may lead as deep as they like",
        "actors/core/schema_cost.py",
        "if depth > MAX_EXPANDED_DEPTH:",
        "if False:",
        ("tests/core/test_arguments.py",),
    ),
    Mutation(
        "packed: a seal takes the message's origin for its own",
        "actors/core/packed.py",
        "if seal is not None and seal.maker == origin and origin is not None:",
        "if seal is not None and origin is not None:",
        ("tests/core/test_history.py",),
    ),
    Mutation(
        "packed: large media are copied into the bytes",
        "actors/core/packed.py",
        "    if len(data) < LARGE and data != _BESIDE:",
        "    if data != _BESIDE:",
        ("tests/core/test_shortcuts.py",),
    ),
    Mutation(
        "state: after a compaction as much counts as imported as before",
        "actors/core/state.py",
        "self._imported = _left(self._imported, event)",
        "pass",
        (STATE,),
    ),
    Mutation(
        "state: after a compaction a lane counts as many messages as older than its epoch as before",
        "actors/core/state.py",
        "_replace(epoch_start=epoch_start)",
        "_replace()",
        (STATE,),
    ),
)
