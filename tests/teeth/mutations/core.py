"""Mutations of the ledger, the turn, the log and the other parts of the pure core."""

from tests.teeth.mutations.mutation import Mutation

CONSERVATION = "tests/core/test_conservation.py"
LEDGER = "tests/core/test_ledger.py"
TURN = "tests/core/test_turn.py"
STATE = "tests/core/test_state.py"
PAIRING = "tests/core/test_pairing.py"
IMPORTS = "tests/adapters/test_import_pairing.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "pairing: a single result is paired with a later call",
        "actors/core/normalize/pairing.py:_Pairing._pair_by_order",
        "self._allow_early or result.message_number >= call.message_number",
        "True",
        (PAIRING,),
    ),
    Mutation(
        "pairing: a single result of a message that was built in memory must follow its call",
        "actors/core/normalize/pairing.py:_Pairing._pair_by_order",
        "self._allow_early or result.message_number >= call.message_number",
        "result.message_number >= call.message_number",
        (PAIRING,),
    ),
    Mutation(
        "pairing: a late result is paired with a newer call although an older one is open",
        "actors/core/normalize/pairing.py:_Pairing._pair_message",
        "not taken and not older.is_open",
        "not taken",
        (PAIRING, IMPORTS),
    ),
    Mutation(
        "pairing: a second result for an id with several calls is paired with the latest call",
        "actors/core/normalize/pairing.py:_Pairing._pair_further_results",
        "len(calls) == 1 and not older",
        "len(calls) == 1",
        (PAIRING,),
    ),
    Mutation(
        "pairing: the name of a tool is ignored",
        "actors/core/normalize/pairing.py:_Pairing.pair_by_name",
        "len(call_indexes) > 1 or ...",
        "...",
        (PAIRING, IMPORTS),
    ),
    Mutation(
        "pairing: calls of one message accept results although one is missing",
        "actors/core/normalize/pairing.py:_Pairing._certain_results",
        "len(result_indexes) == count",
        "result_indexes",
        (PAIRING,),
    ),
    Mutation(
        "events: an image returned by a tool is not stored",
        "actors/core/log/call_events.py:Returned.result",
        "from_fields(*..., self.media)",
        "from_fields(*..., ())",
        ("tests/core/test_ledger.py", "tests/session/test_media_in_results.py"),
    ),
    Mutation(
        "returned: each attachment may be as large as all together",
        "actors/core/turn/tool_output.py:split_output",
        "len(item.data) + len(item.url)",
        "0",
        ("tests/core/test_returned.py",),
    ),
    Mutation(
        "ledger: the last of two real completions wins",
        "actors/core/ledger.py:_add_completion",
        "record.end is None",
        "True",
        (LEDGER,),
    ),
    Mutation(
        "ledger: a cancel removes a completion",
        "actors/core/ledger.py:_apply_call_event",
        "replace(record, cancelled=record.cancelled or reason)",
        "replace(record, cancelled=record.cancelled or reason, end=None)",
        (LEDGER,),
    ),
    Mutation(
        "ledger: a repeated completion is a duplicate",
        "actors/core/ledger.py:_add_completion",
        """
        if new == result_of(record.end) or new in record.duplicates:
            return (record, 0)
        """,
        "",
        (LEDGER,),
    ),
    Mutation(
        "ledger: a seal replaces a completion",
        "actors/core/ledger.py:_seal",
        "record if record.end is not None or record.sealed is not None else replace(record, sealed=reason)",
        "replace(record, sealed=reason)",
        (f"{LEDGER}::test_the_earlier_of_a_completion_and_a_seal_takes_effect",),
    ),
    Mutation(
        "ledger: a result after the seal replaces the synthetic one",
        "actors/core/log/call_events.py:ToolCallRecord.completion",
        "self.end is None or self.sealed is not None",
        "self.end is None",
        (f"{LEDGER}::test_the_earlier_of_a_completion_and_a_seal_takes_effect",),
    ),
    Mutation(
        "content: completeness precedes an error",
        "actors/core/values/content.py:ToolResult.status",
        """
        if self.error_json is not None:
            return "error"
        if self.is_complete or self.media:
            return "complete"
        """,
        """
        if self.is_complete or self.media:
            return "complete"
        if self.error_json is not None:
            return "error"
        """,
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "content: a present result waits for its completeness",
        "actors/core/values/content.py:ToolResult.status",
        """
        if self.error_json is not None:
            ...
        """,
        """
        if self.error_json is not None:
            ...
        if self.is_complete is False:
            return "pending"
        """,
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "content: a result marked incomplete by its source counts as missing",
        "actors/core/values/content.py:ToolResult.status",
        """
        if self.error_json is not None:
            ...
        """,
        """
        if self.error_json is not None:
            ...
        if self.is_complete is False:
            return "pending"
        """,
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "lane: a rebuild renders more than the request had",
        "actors/core/session/lanes.py:Lanes._replay_requests",
        "(sent.history.upto(sent.lengths[-1]), sent.ledger)",
        "(sent.history, sent.ledger)",
        (STATE,),
    ),
    Mutation(
        "table: an older version sees later entries",
        "actors/core/data/persistent.py:PersistentMap.update",
        "{key: live.get(key, UNSET) for key in changes}",
        "{}",
        ("tests/core/test_history.py",),
    ),
    Mutation(
        "table: an older version has later keys",
        "actors/core/data/persistent.py:PersistentMap.update",
        "dict.fromkeys(changes, UNSET)",
        "{}",
        ("tests/core/test_history.py",),
    ),
    Mutation(
        "codec: invalid JSON is accepted",
        "actors/core/log/codec.py:_check_json",
        """
        if text.startswith(prefix) and (text.isascii() or text.decode()):
            return text
        """,
        "return text",
        ("tests/core/test_codec.py",),
    ),
    Mutation(
        "codec: a message is skipped",
        "actors/core/log/codec.py:_CHECKED_TYPES",
        "(*_FIRST_BYTES, *_PACKED, *...)",
        "(*_FIRST_BYTES, *...)",
        ("tests/core/test_codec.py",),
    ),
    Mutation(
        "codec: a field with a default may be missing or written differently",
        "actors/core/log/codec.py:_decode_strictly",
        "_ENCODER.encode(record) != data",
        '_ENCODER.encode(record) == b""',
        ("tests/core/test_codec.py",),
    ),
    Mutation(
        "turn: one round too many runs",
        "actors/core/turn/turn.py:_TurnRules._next_round",
        "self._end.rounds >= self._bounds.max_rounds",
        "self._end.rounds > self._bounds.max_rounds",
        (TURN,),
    ),
    Mutation(
        "turn: corrections are unbounded",
        "actors/core/turn/turn.py:_TurnRules._next_round",
        "is_stuck or ... or self._misses >= self._bounds.max_corrections",
        "is_stuck or ...",
        (TURN,),
    ),
    Mutation(
        "turn: refused reasoning removes the whole structure",
        "actors/core/turn/turn.py:_TurnRules._rewrite",
        '"bare" if refused.reasoning and self._rewritten == "no" else "plain"',
        '"""plain"""',
        (TURN,),
    ),
    Mutation(
        "turn: a refused transcript is rewritten repeatedly",
        "actors/core/turn/turn.py:_TurnRules._rewrite",
        """
        if self._rewritten == "plain":
            ...
        """,
        """
        if False:
            ...
        """,
        (TURN,),
    ),
    Mutation(
        "turn: calls of a cut answer are forgotten",
        "actors/core/turn/turn.py:_TurnRules.next",
        "return self._close(*..., outcome.message, *...)",
        "return self._close(*..., None, *...)",
        (TURN,),
    ),
    Mutation(
        "batch: malformed arguments run as empty ones",
        "actors/core/turn/batch.py:_bind",
        "tool is None or call.is_malformed",
        "tool is None",
        ("tests/core/test_batch.py",),
    ),
    Mutation(
        "routing: a failed member is tried again",
        "actors/core/policy/routing.py:_first_available",
        "[name for name in order if name not in tried]",
        "list(order)",
        ("tests/core/test_routing.py",),
    ),
    Mutation(
        "routing: a held switch is applied to the current meaning of its target",
        "actors/core/policy/routing.py:resolve_switch",
        "return SwitchFailed(target, str(error))",
        "del error",
        ("tests/session/test_switching.py",),
    ),
    Mutation(
        "ledger: a denial has no reason",
        "actors/core/log/call_events.py:ToolCallRecord.reason",
        '"denied" if type(self.end) is Denied else None',
        "None",
        (LEDGER,),
    ),
    Mutation(
        "arguments: a second read of the schema is free",
        "actors/core/schemas/json_schema.py:SchemaCost._measure",
        "size *= 2",
        "size += 0",
        ("tests/core/test_arguments.py",),
    ),
    Mutation(
        "arguments: errors are collected at any cost",
        "actors/core/schemas/json_schema.py:SchemaCost.can_explain",
        "not self._is_recursive or ...",
        "True or ...",
        ("tests/core/test_arguments.py",),
    ),
    Mutation(
        "arguments: references may be nested to any depth",
        "actors/core/schemas/json_schema.py:SchemaCost.why_too_costly",
        "depth > MAX_EXPANDED_DEPTH",
        "False",
        ("tests/core/test_arguments.py",),
    ),
    Mutation(
        "packed: a seal uses the message's origin as its own",
        "actors/core/values/packed.py:_strip_block",
        "seal is not None and seal.maker == origin and (origin is not None)",
        "seal is not None and origin is not None",
        ("tests/core/test_history.py",),
    ),
    Mutation(
        "packed: large media are copied into the bytes",
        "actors/core/values/packed.py:_strip_media",
        "len(data) < LARGE and data != _DETACHED",
        "data != _DETACHED",
        ("tests/core/test_shortcuts.py",),
    ),
    Mutation(
        "state: after a compaction the old number of messages counts as imported",
        "actors/core/session/lanes.py:Lanes.apply_shortening",
        "self._imported = _remaining_count(self._imported, event)",
        "pass",
        (STATE,),
    ),
    Mutation(
        "state: after a compaction the old number of messages counts as before the lane's epoch",
        "actors/core/session/lanes.py:_lane_after_shortening",
        "lane._state._replace(epoch_start=epoch_start)",
        "lane._state._replace()",
        (STATE,),
    ),
)
