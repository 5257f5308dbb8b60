"""Mutations of normalization, rendering, projection and lanes."""

from tests.teeth.mutations.mutation import Mutation

NORMALIZATION = "tests/core/test_normalization.py"
CONSERVATION = "tests/core/test_conservation.py"
RENDER = "tests/core/test_render.py"
ORDER = "tests/core/test_order.py"
LANE = "tests/core/test_lane.py"
ATTACHMENTS = "tests/core/test_attachments.py"
PROJECTION = "tests/core/test_projection.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "apart: two calls stay in one message where only one is allowed",
        "actors/core/render/walk.py:RenderWalk._write_assistant_with_results",
        "(message.blocks,) if self._dialect.turns.calls_together else split_calls(message.blocks)",
        "(message.blocks,)",
        (RENDER,),
    ),
    Mutation(
        "apart: content before a call moves to the previous call",
        "actors/core/render/order.py:split_calls",
        """
        for block in blocks:
            ...
        """,
        """
        for block in sorted(blocks, key=lambda each: type(each) is not ToolCall):
            ...
        """,
        (RENDER,),
    ),
    Mutation(
        "normalize: a call keeps its original role",
        "actors/core/normalize/settle.py:BLOCK_AUTHORS",
        '("assistant",)',
        '("assistant", "user", "tool")',
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: a result keeps its original role",
        "actors/core/normalize/settle.py:BLOCK_AUTHORS",
        '("tool",)',
        '("tool", "user", "assistant")',
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: a repeated id is unchanged",
        "actors/core/normalize/settle.py:Normalizer._new_id",
        "not name or name in self._known",
        "not name",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: ids of earlier messages are forgotten",
        "actors/core/normalize/settle.py:Normalizer.register_preceding",
        "seen = self._known[call.id] = ...",
        "seen = ...",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: empty ids pair_results although their counts differ",
        "actors/core/normalize/pairing.py:_Pairing.pair_by_position",
        "len(direct) == len(calls)",
        "direct",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: empty ids pair_results across other messages",
        "actors/core/normalize/settle.py:Normalizer._pair_results",
        'message.role != "tool"',
        "message.calls",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: the last real result wins",
        "actors/core/normalize/settle.py:Normalizer._record_answer",
        "replace(known, duplicates=(*known.duplicates, kept))",
        "replace(known, end=kept, duplicates=(*known.duplicates, known.completion))",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: equal text with a different image is the same result",
        "actors/core/normalize/settle.py:_completion_fields",
        "(*..., result.media)",
        "(*...,)",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: an orphan is dropped silently",
        "actors/core/normalize/settle.py:Normalizer._add_note",
        "self._waiting += note",
        "",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: a repeated orphan is reported again",
        "actors/core/normalize/settle.py:Normalizer._add_note",
        "self._noted.issuperset(note)",
        "False",
        (
            NORMALIZATION,
            f"{LANE}::test_an_orphan_result_repeated_in_a_later_request_is_not_sent_again",
        ),
    ),
    Mutation(
        "normalize: a call known only to the ledger is not restored",
        "actors/core/normalize/settle.py:Normalizer._settle_unmatched",
        "known is not None and known.tool is not None and key not in self._ids",
        "False",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: a result before its call is an orphan",
        "actors/core/normalize/settle.py:Normalizer._pair_results",
        "not self._mint_ids",
        "False",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: malformed arguments are accepted",
        "actors/core/normalize/settle.py:Normalizer._with_valid_arguments",
        'text.startswith("{") and parse_object(text, max_bytes=size, max_depth=MAX_DEPTH) is not None',
        "True or parse_object(text, max_bytes=size, max_depth=MAX_DEPTH) is not None",
        (NORMALIZATION,),
    ),
    Mutation(
        "normalize: a call running at the time of a copied history is lost",
        "actors/core/normalize/settle.py:Normalizer._note_pending",
        "... and result.is_complete is False and self._known[name].end is None",
        "... and False",
        ("tests/session/test_while_tools_run.py",),
    ),
    Mutation(
        "choose: the outcome of a running call is unknown",
        "actors/core/log/call_events.py:ToolCallRecord.reason",
        'self.cancelled or "running"',
        'self.cancelled or "outcome_unknown"',
        ("tests/session/test_while_tools_run.py",),
    ),
    Mutation(
        "native: a provider-specific part is sent to every provider",
        "actors/core/render/sealed.py:_readable_part",
        'block.seal.kind != "part" or not dialect.can_replay(block.seal.origin, target)',
        'block.seal.kind != "part"',
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "native: a part of another provider is dropped without a report",
        "actors/core/render/sealed.py:native_note",
        'block.seal.kind == "mark"',
        "block",
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "native: half of a pair is sent back",
        "actors/core/render/sealed.py:_complete_pairs",
        "waiting[made] = at",
        "going.add(at)",
        ("tests/adapters/test_left_out.py", "tests/commands/test_generated_histories.py"),
    ),
    Mutation(
        "native: a pair is sent back as often as it occurs",
        "actors/core/render/sealed.py:_complete_pairs",
        "items.admit(made)",
        "items.admit(made) or made",
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "responses: a reasoning item with a repeated key is sent",
        "actors/core/render/sealed.py:_usual_item",
        "_ENCODER.encode(item) == json",
        "_ENCODER.encode(item)",
        ("tests/adapters/test_responses_encode.py",),
    ),
    Mutation(
        "responses: a reasoning item with empty encrypted content is sent",
        "actors/core/render/sealed.py:_reasoning_id",
        "usual.encrypted_content and REASONING_ID.fullmatch(usual.id)",
        "REASONING_ID.fullmatch(usual.id)",
        ("tests/adapters/test_responses_encode.py",),
    ),
    Mutation(
        "responses: a reasoning item with an invalid id is sent",
        "actors/core/render/sealed.py:_reasoning_id",
        "usual.encrypted_content and REASONING_ID.fullmatch(usual.id)",
        "usual.encrypted_content",
        ("tests/adapters/test_responses_encode.py",),
    ),
    Mutation(
        "json: a member of an enum is quoted as its value",
        "actors/core/data/jsonio.py:_literal",
        "type(text) is not str",
        "not isinstance(text, str)",
        ("tests/core/test_jsonio.py",),
    ),
    Mutation(
        "responses: a relay's reasoning without item names is plain text",
        "actors/adapters/responses/decode.py:_resendable_json",
        "not state",
        "not state or not item_id",
        ("tests/session/test_responses_sessions.py",),
    ),
    Mutation(
        "openai_chat: the signature of a call is lost",
        "actors/adapters/openai_chat/encode.py:OpenAIChatWriter.write_call",
        "self._signature is None",
        "self._signature",
        ("tests/session/test_signed_calls.py",),
    ),
    Mutation(
        "order: the output of a provider's own tool follows a call",
        "actors/core/render/order.py:move_calls_last",
        "{ToolCall}",
        "{ToolCall, ProviderBlock}",
        ("tests/core/test_order.py",),
    ),
    Mutation(
        "normalize: content of a pending block is a result",
        "actors/core/normalize/settle.py:Normalizer._settle_result",
        'result.status == "pending"',
        "False",
        ("tests/core/test_recovery.py",),
    ),
    Mutation(
        "normalize: the blocks of a history are forgotten",
        "actors/core/render/choose.py:CompletionChooser.__init__",
        "self._own = own",
        "self._own = Ledger()",
        (f"{CONSERVATION}::test_four_of_five_calls_get_synthetic_results_if_only_one_has_a_real_result",),
    ),
    Mutation(
        "walk: a text too long for the target is sent in full",
        "actors/core/render/walk.py:RenderWalk._supported_blocks",
        "len(json) > longest",
        "False",
        ("tests/core/test_pairing.py",),
    ),
    Mutation(
        "choose: a real result replaces a sealed synthetic one",
        "actors/core/ledger.py:Ledger._answer",
        "known is None or known.sealed is not None or ...",
        "known is None or ...",
        (f"{LANE}::test_a_real_result_after_a_sealed_synthetic_result_is_sent_once_in_every_lane",),
    ),
    Mutation(
        "choose: the ledger's record is not looked up",
        "actors/core/render/choose.py:CompletionChooser._recorded_answer",
        "recorded or said",
        "said",
        (
            "tests/commands/test_generated_histories.py::test_no_generated_history_is_refused_in_any_dialect[0]",
        ),
    ),
    Mutation(
        "choose: the blocks override the ledger",
        "actors/core/render/choose.py:CompletionChooser._recorded_answer",
        "recorded or said",
        "said or recorded",
        (f"{CONSERVATION}::test_each_result_in_a_body_has_its_recorded_content",),
    ),
    Mutation(
        "choose: a late result is lost",
        "actors/core/render/choose.py:CompletionChooser._add_late_result",
        """
        self.waiting += (
            Text(f"[Late result of {tool or 'a tool call'}{failed}: {words}]"),
            *result.media,
        )
        """,
        "_ = (Text(f\"[Late result of {tool or 'a tool call'}{failed}: {words}]\"), *result.media)",
        (f"{CONSERVATION}::test_a_real_result_after_a_sealed_synthetic_result_is_sent_as_a_note",),
    ),
    Mutation(
        "choose: a late result is repeated in each request",
        "actors/core/render/choose.py:CompletionChooser._add_late_result",
        "self._missing[call_id] = False",
        "",
        (f"{LANE}::test_a_result_in_both_the_ledger_and_a_later_block_is_sent_once",),
    ),
    Mutation(
        "choose: a late result of an earlier request is not searched for",
        "actors/core/render/choose.py:CompletionChooser.collect_late_results",
        "self._late_count",
        "len(self._ledger.late)",
        (f"{LANE}::test_a_real_result_after_a_sealed_synthetic_result_is_sent_once_in_every_lane",),
    ),
    Mutation(
        "choose: a result appended after its synthetic one was sent is lost",
        "actors/core/render/choose.py:CompletionChooser.collect_late_results",
        "is_missing and call_id not in self._missing and ...",
        "False and ...",
        (f"{LANE}::test_a_result_in_both_the_ledger_and_a_later_block_is_sent_once",),
    ),
    Mutation(
        "choose: a late result is repeated by a later block",
        "actors/core/render/choose.py:CompletionChooser._add_late_result",
        "self._missing[call_id] = False",
        "",
        (f"{LANE}::test_a_result_in_both_the_ledger_and_a_later_block_is_sent_once",),
    ),
    Mutation(
        "walk: only the first missing result is filled",
        "actors/core/render/walk.py:RenderWalk._write_results",
        "writer.write_result(call_id, name, words, failed, held)",
        """
        writer.write_result(call_id, name, words, failed, held)
        if choice.choose_answer(call.id) is None:
            break
        """,
        (RENDER,),
    ),
    Mutation(
        "choose: the recorded reason is not shown",
        "actors/core/render/choose.py:CompletionChooser._synthetic_answer",
        'reason = "lost" if known is None else known.reason or "lost"',
        'reason = "lost"',
        (RENDER,),
    ),
    Mutation(
        "walk: results are in a different order than their calls",
        "actors/core/render/walk.py:RenderWalk._write_results",
        """
        for call, call_id, name in calls:
            ...
        """,
        """
        for call, call_id, name in reversed(calls):
            ...
        """,
        (RENDER,),
    ),
    Mutation(
        "walk: a failed result is sent as success",
        "actors/core/render/walk.py:RenderWalk._write_results",
        "writer.write_result(*..., failed, held)",
        "writer.write_result(*..., failed and bool(attached), held)",
        (f"{CONSERVATION}::test_a_result_of_any_size_is_sent_completely_and_with_its_status",),
    ),
    Mutation(
        "walk: a failed result with an image is sent as success",
        "actors/core/render/walk.py:RenderWalk._write_results",
        "writer.write_result(*..., failed, held)",
        "writer.write_result(*..., failed and (not attached), held)",
        (RENDER,),
    ),
    Mutation(
        "walk: a result of more than 600 bytes is cut to 200 characters",
        "actors/core/render/walk.py:RenderWalk._write_results",
        "writer.write_result(call_id, name, words, failed, held)",
        """
        cut = words if len(words) <= 600 else quote(unquote(words)[:200])
        writer.write_result(call_id, name, cut, failed, held)
        """,
        (f"{CONSERVATION}::test_a_result_of_any_size_is_sent_completely_and_with_its_status",),
    ),
    Mutation(
        "order: reasoning is sent back after a different prefix",
        "actors/core/render/order.py:drop_stale_reasoning",
        "unchanged > 0 or _is_annotation(block) or type(block) is not Thinking or (block.seal is None)",
        "True",
        (ORDER,),
    ),
    Mutation(
        "order: a provider's call id is not compared",
        "actors/core/render/order.py:_is_sent_unchanged",
        "call.native.data[1:-1] == call_id.encode() or call.native_id == call_id",
        "True",
        (ORDER,),
    ),
    Mutation(
        "order: a changed tool name is not compared",
        "actors/core/render/order.py:_is_sent_unchanged",
        "call.native is None or call.is_malformed or call.is_free or call.name != name",
        "call.native is None or call.is_malformed or call.is_free",
        (ORDER,),
    ),
    Mutation(
        "order: text stays after a call",
        "actors/core/render/walk.py:RenderWalk._order_blocks",
        "dialect.turns.calls_last",
        "False",
        (ORDER,),
    ),
    Mutation(
        "assembly: thinking after an omitted part keeps its seal",
        "actors/adapters/answer_blocks.py:answer_blocks",
        "blocks.append(block if stands else _without_bound_seal(block))",
        "blocks.append(block)",
        ("tests/session/test_bound_reasoning.py",),
    ),
    Mutation(
        "thinking: any reasoning is sent",
        "actors/core/render/sealed.py:ReasoningFilter.is_readable",
        "self._dialect.can_replay(seal.origin, self._target.binding)",
        "self._replays",
        (RENDER,),
    ),
    Mutation(
        "thinking: all reasoning is treated like the first",
        "actors/core/render/sealed.py:ReasoningFilter.is_readable",
        "seal.maker is not self._maker",
        "self._maker is None",
        (RENDER,),
    ),
    Mutation(
        "thinking: an unsealed or emptily sealed block is sent",
        "actors/core/render/sealed.py:ReasoningFilter.is_readable",
        "... or (seal := block.seal) is None or seal.data == b'\"\"'",
        "... or (seal := block.seal) is None",
        (RENDER,),
    ),
    Mutation(
        "thinking: thinking may follow other text",
        "actors/core/render/sealed.py:ReasoningFilter._can_replay",
        "not self._first or self.is_readable(blocks[0])",
        "True",
        (RENDER,),
    ),
    Mutation(
        "thinking: thinking sealed before an epoch is sent again",
        "actors/core/render/walk.py:RenderWalk.write_fragments",
        "at >= fresh",
        "True",
        (f"{LANE}::test_a_new_epoch_drops_sealed_thinking_and_keeps_every_id",),
    ),
    Mutation(
        "walk: an emptied message is kept",
        "actors/core/render/walk.py:RenderWalk._write_answer",
        """
        if left:
            ...
        """,
        """
        if True:
            ...
        """,
        (RENDER,),
    ),
    Mutation(
        "walk: blank means empty",
        "actors/core/data/jsonio.py:is_blank",
        "unquote(literal).strip()",
        "unquote(literal)",
        (RENDER,),
    ),
    Mutation(
        "walk: media are sent to any target",
        "actors/core/render/walk.py:RenderWalk._supported_blocks",
        "by_human and self._attachments.admit(block, dialect.media.user_kinds)",
        "self._attachments.admit(block, dialect.media.user_kinds)",
        (RENDER,),
    ),
    Mutation(
        "walk: media stay in the result of a failed tool",
        "actors/core/render/walk.py:RenderWalk._place_media",
        "not failed and attachments.admit(media, dialect.media.result_kinds)",
        "attachments.admit(media, dialect.media.result_kinds)",
        (RENDER,),
    ),
    Mutation(
        "walk: content after the results is not numbered",
        "actors/core/render/walk.py:RenderWalk._write_results",
        'Text(f"[Attachment {number}:]")',
        'Text("[Attachment:]")',
        (RENDER,),
    ),
    Mutation(
        "attach: more media are shown than a request may contain",
        "actors/core/render/attach.py:Attachments._exceeds_count_limit",
        "most is not None and self._media >= most",
        "False",
        (ATTACHMENTS,),
    ),
    Mutation(
        "attach: more documents are shown than a request may contain",
        "actors/core/render/attach.py:Attachments._exceeds_count_limit",
        "most_documents is not None and self._documents >= most_documents",
        "False",
        (ATTACHMENTS,),
    ),
    Mutation(
        "attach: documents are named by their content alone",
        "actors/core/render/attach.py:Attachments.with_title",
        "1 + (self._titles.get(title) or self._usage.titles.get(title) or 0)",
        "1",
        (ATTACHMENTS,),
    ),
    Mutation(
        "attach: names of documents in earlier requests are forgotten",
        "actors/core/render/attach.py:Attachments.with_title",
        "self._titles.get(title) or self._usage.titles.get(title) or 0",
        "self._titles.get(title) or 0",
        (ATTACHMENTS,),
    ),
    Mutation(
        "lane: the media shown in an epoch are forgotten",
        "actors/core/render/walk.py:RenderWalk.end_state",
        "state._replace(**..., usage=self._items.with_sent_items(self._attachments.updated_usage()))",
        "state._replace(**...)",
        (ATTACHMENTS,),
    ),
    Mutation(
        "lane: an epoch starts with the media of the previous one",
        "actors/core/lanes/lane.py:begin_epoch",
        """
        RenderState(
            event.epoch,
            epoch_start,
            event.plain,
            calls=old.calls,
            used=old.used,
            index=old.index,
            **...,
        )
        """,
        """
        RenderState(
            event.epoch,
            epoch_start,
            event.plain,
            calls=old.calls,
            used=old.used,
            index=old.index,
            usage=old.usage,
            **...,
        )
        """,
        (f"{ATTACHMENTS}::test_a_new_epoch_starts_with_the_full_media_limit",),
    ),
    Mutation(
        "walk: a transcript may start with the assistant",
        "actors/core/render/walk.py:RenderWalk._begin_message",
        'last is None and role != "user" and (role not in turns.first_roles)',
        "False",
        (RENDER,),
    ),
    Mutation(
        "walk: a transcript may end with the assistant",
        "actors/core/render/walk.py:RenderWalk._end_transcript",
        "self._last_role not in self._dialect.turns.last_roles or self._is_in_loop_without_thinking()",
        "self._last_role is None",
        (RENDER,),
    ),
    Mutation(
        "walk: merged thinking follows other text",
        "actors/core/render/walk.py:RenderWalk._begin_message",
        "self._separates_reasoning and thinks or ...",
        "False or ...",
        (RENDER,),
    ),
    Mutation(
        "walk: fillers are not reported",
        "actors/core/render/walk.py:RenderWalk._write_filler_message",
        "self._notes.fillers[kind] += 1",
        "",
        (RENDER,),
    ),
    Mutation(
        "projection: two calls may get one id",
        "actors/core/transcript/transcript.py:Projection._is_free",
        "emitted not in self._taken and (not (self._has_given and emitted in self._used))",
        "True",
        (PROJECTION,),
    ),
    Mutation(
        "projection: large sets of tool names are kept after their sessions",
        "actors/core/transcript/transcript.py:_intern",
        "len(names) <= MAX_INTERNED",
        "True",
        (
            "tests/core/test_projection.py::test_lanes_share_small_sets_of_tool_names_and_no_large_set_is_kept",
        ),
    ),
    Mutation(
        "projection: ids of earlier requests are reused",
        "actors/core/transcript/transcript.py:Projection._is_free",
        "emitted not in self._taken and (not (self._has_given and emitted in self._used))",
        "emitted not in self._taken",
        (PROJECTION,),
    ),
    Mutation(
        "projection: a foreign native id is passed on",
        "actors/core/transcript/transcript.py:Projection._own_id",
        "self._dialect.ids.native_passthrough and self._provider_key(seal.origin) == self._home",
        "self._dialect.ids.native_passthrough",
        (PROJECTION,),
    ),
    Mutation(
        "projection: a native id of any format is passed on",
        "actors/core/transcript/transcript.py:Projection._own_id",
        "not native or not self._is_id(native) or (not self._is_free(native))",
        "not native or not self._is_free(native)",
        (PROJECTION,),
    ),
    Mutation(
        "projection: an invalid tool name is passed on",
        "actors/core/transcript/transcript.py:tool_name",
        "re.fullmatch(pattern, name)",
        "name",
        (PROJECTION,),
    ),
    Mutation(
        "plain: a result is omitted from the plain render",
        "actors/core/render/walk.py:RenderWalk._write_as_text",
        "f\"[The tool {('failed' if failed else 'answered')}: {unquote(words)}]\"",
        "f\"[The tool {('failed' if failed else 'answered')}.]\"",
        (RENDER,),
    ),
    Mutation(
        "plain: a call stays a call in the plain render",
        "actors/core/render/walk.py:_call_as_text",
        "type(block) is not ToolCall",
        "block",
        (RENDER,),
    ),
    Mutation(
        "sealing: a result sent for the first time is not sealed",
        "actors/core/lanes/lane.py:results_to_seal",
        "(known := ledger.get(call_id)) is None or known.sealed is None",
        "(known := ledger.get(call_id)) is not None and known.sealed is None",
        (f"{LANE}::test_a_synthetic_result_sealed_in_one_lane_is_also_sent_in_the_other_lane",),
    ),
    Mutation(
        "lane: an epoch forgets its assigned ids",
        "actors/core/lanes/lane.py:begin_epoch",
        "RenderState(*..., calls=old.calls, used=old.used, index=old.index, **...)",
        "RenderState(*..., **...)",
        (
            f"{LANE}::test_a_call_keeps_its_wire_id_after_an_earlier_call_with_the_same_native_id_is_compacted",
        ),
    ),
    Mutation(
        "lane: sent content is changed afterwards",
        "actors/core/data/persistent.py:_append_joined",
        "grown.pop() + first",
        "first + grown.pop()",
        ("tests/core/test_segments.py::test_segments_consist_of_few_pieces_with_exactly_the_appended_bytes",),
    ),
    Mutation(
        "lane: long results are copied into it",
        "actors/adapters/writing.py:BaseWriter.write_more",
        "len(literal) < SHARED",
        "literal",
        (f"{LANE}::test_the_log_the_ledger_and_the_lanes_share_one_object_for_a_long_result",),
    ),
    Mutation(
        "lane: a render continues as if the lane had ended differently",
        "actors/core/render/walk.py:RenderWalk.__init__",
        "encoder.writer(state.last_role)",
        "encoder.writer(None)",
        (f"{LANE}::test_switching_to_another_provider_and_back_keeps_the_first_lane",),
    ),
    Mutation(
        "lane: the next render starts where the last one started",
        "actors/core/render/walk.py:RenderWalk.end_state",
        "self._length",
        "self._start_state.cursor",
        (f"{LANE}::test_a_request_renders_only_new_messages",),
    ),
    Mutation(
        "lane: a filler depends only on the tail",
        "actors/core/render/walk.py:RenderWalk.__init__",
        "self._last_role: Role | None = state.last_role",
        "self._last_role: Role | None = None",
        (f"{LANE}::test_a_request_renders_only_new_messages",),
    ),
    Mutation(
        "lane: late results shown in an epoch are missing in the next",
        "actors/core/lanes/lane.py:begin_epoch",
        """
        RenderState(
            event.epoch,
            epoch_start,
            event.plain,
            calls=old.calls,
            used=old.used,
            index=old.index,
            **...,
        )
        """,
        """
        RenderState(
            event.epoch,
            epoch_start,
            event.plain,
            calls=old.calls,
            used=old.used,
            index=old.index,
            late_count=old.late_count,
            **...,
        )
        """,
        (f"{LANE}::test_a_late_result_of_a_compacted_call_is_sent",),
    ),
    Mutation(
        "lane: reasoning is sent back after a rewrite",
        "actors/core/render/walk.py:RenderWalk.write_fragments",
        "self._start_state.epoch_start - self._start_state.cursor",
        "0",
        (f"{LANE}::test_a_new_epoch_drops_sealed_thinking_and_keeps_every_id",),
    ),
    Mutation(
        "lane: plain-text reasoning is forgotten after a rewrite",
        "actors/core/lanes/lane.py:begin_epoch",
        'dialect.reasoning.carrier == "reasoning_content" and event.reason != "thinking"',
        "False",
        (
            "tests/core/test_state.py::test_plain_reasoning_after_an_import_survives_a_compaction_of_earlier_messages",
        ),
    ),
    Mutation(
        "flat: the judge reads a request from its beginning",
        "actors/core/lanes/lane.py:_write_in_slices",
        "check_fragment(check_state, *fragment, strict=strict)",
        'check_fragment(initial_state(walk._dialect), b"".join((*segments, *fragment)))',
        ("tests/runtime/test_flat_turns.py",),
    ),
)
