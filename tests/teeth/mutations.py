"""The mistakes, as data: where, what stands there, what is put in its place, and which tests must turn red.

Each is a misunderstanding someone could have, not a syntax error. `old` occurs exactly once in its file.
"""

from dataclasses import dataclass

CONSERVATION = "tests/core/test_conservation.py"
RENDER = "tests/core/test_render.py"
LANE = "tests/core/test_lane.py"
LEDGER = "tests/core/test_ledger.py"
PROJECTION = "tests/core/test_projection.py"
CHECK = "tests/core/test_check.py"
FOLD = "tests/core/test_check_fold.py"
TURN = "tests/core/test_turn.py"
STATE = "tests/core/test_state.py"
GENERATED = "tests/test_generated_histories.py::test_no_generated_history_is_refused_in_either_dialect[0]"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mistake.

    Args:
        what: The promise it breaks, in a few words.
        file: Path from the root of the tree.
        old, new: Text that stands there once, and what replaces it.
        tests: What must notice, as pytest takes it.
    """

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTATIONS: tuple[Mutation, ...] = (
    # ---- the passes
    Mutation(
        "attribute: a call stays under the speaker it was found under",
        "actors/core/render/attribute.py",
        'if kind is ToolCall:\n        return "model"',
        "if kind is ToolCall:\n        return speaker",
        (CONSERVATION,),
    ),
    Mutation(
        "attribute: a result stays under the speaker it was found under",
        "actors/core/render/attribute.py",
        'if kind is ToolResult:\n        return "tool"',
        "if kind is ToolResult:\n        return speaker",
        (GENERATED,),
    ),
    Mutation(
        "identify: a repeated id is left as it is",
        "actors/core/render/identify.py",
        "while name in self._taken or name in self._shown:",
        "while False:",
        (GENERATED,),
    ),
    Mutation(
        "identify: ids sent in earlier requests are forgotten",
        "actors/core/render/identify.py",
        "while name in self._taken or name in self._shown:",
        "while name in self._taken:",
        (LANE,),
    ),
    Mutation(
        "pairing: a repeated id's result goes to the first message's call of that id",
        "actors/core/pairing.py",
        "calls = groups[-1][1]",
        "calls = groups[0][1]",
        ("tests/core/test_pairing.py", "tests/core/test_recovery.py"),
    ),
    Mutation(
        "pairing: results of one message's calls of one id are swapped",
        "actors/core/pairing.py",
        "calls.popleft()",
        "calls.pop()",
        ("tests/core/test_pairing.py",),
    ),
    Mutation(
        "tidy: a text too long for the target is sent whole",
        "actors/core/render/tidy.py",
        "len(block.json) > dialect.max_string",
        "False",
        ("tests/core/test_pairing.py",),
    ),
    Mutation(
        "choose: a real result takes the place of a sealed synthetic one",
        "actors/core/render/choose.py",
        "        if ledger.is_sealed(call_id):\n            sealed.add(call_id)\n        elif",
        "        if",
        (CONSERVATION,),
    ),
    Mutation(
        "choose: what the ledger recorded is not looked up",
        "actors/core/render/choose.py",
        "        elif (completion := ledger.completion(call_id)) is not None:\n"
        "            effective[call_id] = completion\n",
        "",
        (CONSERVATION,),
    ),
    Mutation(
        "choose: the last real result wins",
        "actors/core/render/choose.py",
        "                    effective.setdefault(call_id, result)",
        "                    effective[call_id] = result",
        (CONSERVATION,),
    ),
    Mutation(
        "choose: a duplicate is emitted again",
        "actors/core/render/choose.py",
        "    elif call_id not in choice.placed:",
        "    elif result.status != 'pending':",
        (f"{CONSERVATION}::test_the_report_says_what_was_done_with_canonical_ids",),
    ),
    Mutation(
        "choose: a late result is lost",
        "actors/core/render/choose.py",
        "    choice.waiting.append(_label(f\"Late result of {name or 'a tool call'}\", result))",
        "",
        (CONSERVATION,),
    ),
    Mutation(
        "choose: a late result is told once in each request",
        "actors/core/render/choose.py",
        "        shown=standing.shown.update(dict.fromkeys(choice.late, False)),",
        "        shown=standing.shown,",
        (f"{LANE}::test_a_result_that_the_ledger_and_a_later_block_both_bring_is_told_once",),
    ),
    Mutation(
        "choose: a late result of an earlier request is not looked for",
        "actors/core/render/choose.py",
        "    for call_id in ledger.late[standing.told :]:",
        "    for call_id in ledger.late[len(ledger.late) :]:",
        (f"{LANE}::test_a_real_result_after_its_seal_is_told_once_in_every_lane",),
    ),
    Mutation(
        "choose: an orphan is dropped in silence",
        "actors/core/render/choose.py",
        '    choice.waiting.append(_label("A tool result without its call", result))',
        "",
        (CONSERVATION,),
    ),
    Mutation(
        "choose: a call that only the ledger knows is not restored",
        "actors/core/render/choose.py",
        "    if known is None or known.tool is None:",
        "    if True:",
        (CONSERVATION,),
    ),
    Mutation(
        "close: only the first missing result is made up for",
        "actors/core/render/close.py",
        "for call in missing]))",
        "for call in missing[:1]]))",
        (CONSERVATION,),
    ),
    Mutation(
        "close: the recorded reason is not given",
        "actors/core/render/close.py",
        '    return known.reason or "lost"',
        '    return "lost"',
        (RENDER,),
    ),
    Mutation(
        "place: results follow in the order of their arrival",
        "actors/core/render/place.py",
        "results = tuple(answers[call.id] for call in calls)",
        "made = {call.id for call in calls}\n"
        "            results = tuple(answer for call_id, answer in answers.items() if call_id in made)",
        (f"{CONSERVATION}::test_the_order_in_which_results_arrived_changes_no_byte",),
    ),
    Mutation(
        "place: results stay where they stood",
        "actors/core/render/place.py",
        "    if not answers:",
        "    if True:",
        (GENERATED,),
    ),
    Mutation(
        "thinking: anyone's reasoning is sent",
        "actors/core/render/thinking.py",
        "    return dialect.opens(block.seal.origin, reader)",
        '    return dialect.thinking_carrier != "none"',
        (RENDER,),
    ),
    Mutation(
        "thinking: an unsealed or emptily sealed block is sent",
        "actors/core/render/thinking.py",
        " or block.seal is None or block.seal.data == b'\"\"':",
        " or block.seal is None:",
        (GENERATED,),
    ),
    Mutation(
        "thinking: it may stand behind other words",
        "actors/core/render/thinking.py",
        "    return not dialect.thinking_first or _own(message.blocks[0], dialect, reader.binding)",
        "    return True",
        (GENERATED,),
    ),
    Mutation(
        "thinking: what was sealed before an epoch is sent again",
        "actors/core/render/__init__.py",
        "    return tail if stale <= 0 else",
        "    return tail if True else",
        (f"{LANE}::test_an_epoch_forgets_sealed_thinking_and_keeps_every_id",),
    ),
    Mutation(
        "tidy: an emptied message is kept",
        "actors/core/render/tidy.py",
        "        if blocks:\n            tidied.append",
        "        if True:\n            tidied.append",
        (GENERATED,),
    ),
    Mutation(
        "tidy: blank means empty",
        "actors/core/render/tidy.py",
        "not block.text.strip()",
        "not block.text",
        (GENERATED,),
    ),
    Mutation(
        "tidy: media goes anywhere",
        "actors/core/render/tidy.py",
        '        message.speaker == "human"\n        and ',
        "        ",
        (GENERATED,),
    ),
    Mutation(
        "neighbours: a transcript may begin with the assistant",
        "actors/core/render/neighbours.py",
        "if last_role is None and role not in dialect.first_roles:",
        "if False:",
        (GENERATED,),
    ),
    Mutation(
        "neighbours: a transcript may end with the assistant",
        "actors/core/render/neighbours.py",
        "    if last_role not in dialect.last_roles:",
        "    if last_role is None:",
        (GENERATED,),
    ),
    Mutation(
        "neighbours: merged thinking stands behind other words",
        "actors/core/render/neighbours.py",
        'elif merged and role == "assistant" == last_role and type(blocks[0]) is Thinking:',
        "elif False:",
        (GENERATED,),
    ),
    Mutation(
        "projection: two calls may get one id",
        "actors/core/projection.py",
        "return emitted not in self._taken and emitted not in self._used",
        "return True",
        (PROJECTION,),
    ),
    Mutation(
        "projection: a foreign native id is passed on",
        "actors/core/projection.py",
        "return (origin.dialect, origin.endpoint) == self._home",
        "return True",
        (PROJECTION,),
    ),
    Mutation(
        "projection: a native id of any form is passed on",
        "actors/core/projection.py",
        "return native if self._is_id(native) and self._free(native) else None",
        "return native if self._free(native) else None",
        (PROJECTION,),
    ),
    Mutation(
        "projection: an illegal tool name is passed on",
        "actors/core/projection.py",
        "    if re.fullmatch(pattern, name):",
        "    if name:",
        (PROJECTION,),
    ),
    Mutation(
        "plain: a result is left out of the conservative render",
        "actors/core/render/plain.py",
        'return Text(f"[The tool {how}: {unquote(block.shown)}]")',
        'return Text(f"[The tool {how}.]")',
        (f"{LANE}::test_the_conservative_render_loses_no_result",),
    ),
    Mutation(
        "plain: a call stays a call in the conservative render",
        "actors/core/render/plain.py",
        "    if isinstance(block, ToolCall):",
        "    if False:",
        (LANE,),
    ),
    # ---- ledger and recovery
    Mutation(
        "ledger: of two real completions the last wins",
        "actors/core/ledger.py",
        "    if first is None:",
        "    if True:",
        (LEDGER,),
    ),
    Mutation(
        "ledger: a cancel takes back a completion",
        "actors/core/ledger.py",
        "return (tool, arguments, started, completion, cancelled or reason, sealed, late, duplicates)",
        "return (tool, arguments, started, None, cancelled or reason, sealed, late, duplicates)",
        (LEDGER,),
    ),
    Mutation(
        "ledger: the same completion again is a duplicate",
        "actors/core/ledger.py",
        "    elif new != first and new not in duplicates:",
        "    else:",
        (LEDGER,),
    ),
    Mutation(
        "ledger: a seal replaces a completion",
        "actors/core/ledger.py",
        "    if record[3] is not None or record[5] is not None:\n        return record\n",
        "",
        (f"{LEDGER}::test_between_a_completion_and_a_seal_the_first_wins",),
    ),
    Mutation(
        "ledger: a result after the seal takes the synthetic one's place",
        "actors/core/ledger.py",
        "        if sealed is None:\n            completion = new",
        "        if True:\n            completion = new",
        (f"{LEDGER}::test_between_a_completion_and_a_seal_the_first_wins",),
    ),
    Mutation(
        "sealing: what a request sends for the first time is not sealed",
        "actors/core/lane.py",
        "        if (known := ledger.get(call_id)) is None or known.sealed is None",
        "        if (known := ledger.get(call_id)) is not None and known.sealed is None",
        (f"{LANE}::test_a_seal_made_for_one_lane_binds_the_other",),
    ),
    Mutation(
        "recovery: a pending block is a completion",
        "actors/core/recovery.py",
        'and block.status != "pending":',
        ":",
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "content: completeness goes before an error",
        "actors/core/content.py",
        '        if self.error_json is not None:\n            return "error"\n'
        "        if self.is_complete is not None:\n"
        '            return "complete" if self.is_complete else "pending"\n',
        "        if self.is_complete is not None:\n"
        '            return "complete" if self.is_complete else "pending"\n'
        '        if self.error_json is not None:\n            return "error"\n',
        (f"{CONSERVATION}::test_status_follows_error_then_completeness_then_content",),
    ),
    # ---- lanes and the fold
    Mutation(
        "lane: an epoch forgets the ids it has given",
        "actors/core/lane.py",
        "Standing(event.epoch, floor, event.plain, calls=old.calls, used=old.used, told=told)",
        "Standing(event.epoch, floor, event.plain, told=told)",
        (f"{LANE}::test_an_id_given_stays_given_after_its_neighbour_was_compacted_away",),
    ),
    Mutation(
        "lane: what was sent is changed afterwards",
        "actors/core/lane.py",
        '    return (*segments[:kept], b"".join((*segments[kept:], fragment)))',
        '    return (*segments[:kept], b"".join((*reversed(segments[kept:]), fragment)))',
        (LANE,),
    ),
    Mutation(
        "lane: a rebuild renders more than the request had",
        "actors/core/state.py",
        "history = before.history.upto(event.cursor)",
        "history = before.history",
        (STATE,),
    ),
    Mutation(
        "lane: the next render begins where the last began",
        "actors/core/render/__init__.py",
        "        cursor=len(history),",
        "        cursor=standing.cursor,",
        (f"{LANE}::test_a_request_renders_only_what_is_new",),
    ),
    Mutation(
        "lane: a filler depends on the tail alone",
        "actors/core/render/__init__.py",
        "entries = neighbours(projected, dialect, standing.last_role)",
        "entries = neighbours(projected, dialect, None)",
        (f"{LANE}::test_a_request_renders_only_what_is_new",),
    ),
    Mutation(
        "table: an older version sees what came later",
        "actors/core/table.py",
        "        self._undo = {key: live.get(key, _ABSENT) for key in changes}",
        "        self._undo = {}",
        ("tests/core/test_history.py",),
    ),
    Mutation(
        "codec: the model's own arguments text is not read back",
        "actors/core/codec.py",
        'raw=b["raw"],',
        "raw=None,",
        ("tests/core/test_codec.py",),
    ),
    # ---- the judge
    Mutation(
        "check, openai_chat: a call may stay open",
        "actors/core/check/openai_chat.py",
        '            if self.due:\n                self._unanswered(f"before this {role} message")',
        "            self.due.clear()",
        (CHECK,),
    ),
    Mutation(
        "check, openai_chat: a call may stay open at the end",
        "actors/core/check/openai_chat.py",
        '        if self.due:\n            self._unanswered("at the end")\n        if not self.count',
        "        if not self.count",
        (CHECK,),
    ),
    Mutation(
        "check, openai_chat: a second result passes",
        "actors/core/check/openai_chat.py",
        "            del self.due[call_id]\n            self.answered.add(call_id)",
        "            self.answered.add(call_id)",
        (CHECK,),
    ),
    Mutation(
        "check, anthropic: a result may stand behind words",
        "actors/core/check/anthropic.py",
        "        if self.mixed:\n            self.fault(",
        "        if False:\n            self.fault(",
        (CHECK,),
    ),
    Mutation(
        "check, anthropic: an id may be used twice",
        "actors/core/check/anthropic.py",
        '        if call_id in self.due or (taken and self.dialect.id_unique_scope == "transcript"):',
        "        if False:",
        (CHECK,),
    ),
    Mutation(
        "check: open calls are forgotten between fragments",
        "actors/core/check/state.py",
        "        self.due = dict.fromkeys(state.due)",
        "        self.due: dict[str, None] = {}",
        (FOLD,),
    ),
    # ---- a turn and its switch
    Mutation(
        "switch: one asked for during a turn is applied at once",
        "actors/session.py",
        "        conductor = self._conductor\n        if conductor is None:",
        "        conductor = self._conductor\n        if True:",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "switch: one that was held is forgotten at the boundary",
        "actors/session.py",
        "        if held is None:\n            await self._concluded()",
        "        if True:\n            await self._concluded()",
        ("tests/test_switching.py",),
    ),
    Mutation(
        "turn: one round too many",
        "actors/core/turn.py",
        "self._round >= self._bounds.rounds or",
        "self._round > self._bounds.rounds or",
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
        "turn: a refused transcript is rewritten again and again",
        "actors/core/turn.py",
        "        if self._rewritten:\n",
        "        if False:\n",
        (TURN,),
    ),
    Mutation(
        "turn: calls of an answer that was cut are forgotten",
        "actors/core/turn.py",
        'return Close("failed", broke.why, broke.message.calls if broke.message else ())',
        'return Close("failed", broke.why)',
        (TURN,),
    ),
    Mutation(
        "batch: malformed arguments are run as none",
        "actors/core/batch.py",
        "    if call.raw is not None:",
        "    if False:",
        ("tests/core/test_batch.py",),
    ),
    Mutation(
        "routing: a member that failed is tried again",
        "actors/core/routing.py",
        "    return next((name for name in order if name not in tried), None)",
        "    return next(iter(order), None)",
        ("tests/core/test_routing.py",),
    ),
)
