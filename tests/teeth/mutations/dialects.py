"""Mutations of the rules of dialects, and of their encoding, decoding and judging."""

from tests.teeth.mutations.mutation import Mutation

PROJECTION = "tests/core/test_projection.py"
FOLD = "tests/core/test_check_fold.py"
RESPONSES = "tests/adapters/test_responses_encode.py"
GEMINI_ENCODE = "tests/adapters/test_gemini_encode.py"
GEMINI_DECODE = "tests/adapters/test_gemini_decode.py"
GEMINI_TURNS = "tests/strict/test_gemini_turns.py"
VENDORS = "tests/adapters/test_vendors.py"
TOLD = "tests/core/test_conservation.py::test_a_result_of_any_size_is_sent_completely_and_with_its_status"
SCENARIO = "tests/scenarios/test_scenarios.py::test_our_request_for_a_scenario_is_accepted_and_has_the_expected_shape"
GENERATED = (
    "tests/commands/test_generated_histories.py::test_no_generated_history_is_refused_in_any_dialect[0]"
)
WALKS = "tests/commands/test_walks.py::test_a_random_walk_has_no_refusal_and_never_changes_sent_messages"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "bedrock: called tools are not declared once tools are off",
        "actors/adapters/converse.py:request_head",
        '[*settings.tools, *(ToolSpec(name, "", _ANY_INPUT) for name in sorted(called_tools))]',
        "settings.tools",
        ("tests/adapters/test_converse_encode.py",),
    ),
    Mutation(
        "bedrock: ids have another provider's format",
        "actors/core/transcript/transcript.py:_FORMATS",
        '("tooluse_", 22)',
        '("call_", 24)',
        ("tests/core/test_check_converse.py",),
    ),
    Mutation(
        "bedrock: a blank result is sent unchanged",
        "actors/adapters/converse.py:ConverseWriter._result_text",
        "self._empty_result if self._empty_result != b'\"\"' and is_blank(json) else json",
        "json",
        ("tests/adapters/test_converse_encode.py", GENERATED),
    ),
    Mutation(
        "bedrock: a stream cut before its end passes",
        "actors/adapters/converse.py:ConverseDecoder.on_stream_end",
        "self._stopped and not self.ended",
        "not self.ended",
        ("tests/adapters/test_converse_decode.py",),
    ),
    Mutation(
        "bedrock: a frame's checksum is not checked",
        "actors/adapters/framing.py:_decode_frame",
        'crc32(frame[:-_CRC]) != unpack_from(">I", frame, len(frame) - _CRC)[0]',
        'False and crc32(frame[:-_CRC]) != unpack_from(">I", frame, len(frame) - _CRC)[0]',
        ("tests/adapters/test_outside_frames.py",),
    ),
    Mutation(
        "bedrock: only the first segment of a body is signed",
        "actors/provider/configured_credentials.py:signature_headers",
        "request.segments",
        "request.segments[:1]",
        ("tests/provider/test_credentials_aws.py",),
    ),
    Mutation(
        "assembly: a call is repeated when its end is reported twice",
        "actors/adapters/assembly.py:MessageBuilder.end_part",
        "... or part.ended or part.dropped",
        "... or part.dropped",
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "decode: an event without content is a fault",
        "actors/adapters/base.py:Decoder._process_events",
        "no_payload if data == NULL else _parse_object(data, 'an event of the stream')",
        "_parse_object(data, 'an event of the stream')",
        (
            "tests/adapters/test_decode_cuts.py::test_events_without_content_are_skipped_if_other_events_have_content",
            "tests/adapters/test_reported_streams.py",
        ),
    ),
    Mutation(
        "decode: a stop reason that means failure is an empty answer",
        "actors/adapters/base.py:Decoder._check_finish_reason",
        "not stands",
        "False",
        ("tests/adapters/test_reasons_to_stop.py",),
    ),
    Mutation(
        "decode: a JSON error between events is a cut stream",
        "actors/adapters/framing.py:EventParser._process_line",
        'self._stray or line.startswith((b"{", b"["))',
        'False and line.startswith((b"{", b"["))',
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "decode, anthropic: a relay's own error format is skipped",
        "actors/adapters/anthropic/decode.py:MessagesDecoder.process_event",
        '"error" in (kind, name) or payload.get("error")',
        'kind == "error"',
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "provider: silently withheld reasoning is not reported",
        "actors/provider/rounds.py:Round._complete_message",
        "decoder.withheld",
        "()",
        ("tests/provider/test_provider.py::test_reasoning_withheld_by_a_provider_is_counted_as_a_refusal",),
    ),
    Mutation(
        "anthropic: unsigned thinking in a copied answer is not sent back",
        "actors/adapters/anthropic/decode.py:MessagesDecoder._close_block",
        'self.dialect.reasoning.required == "with_calls"',
        "False",
        ("tests/adapters/test_anthropic_copies.py",),
    ),
    Mutation(
        "config: a dialect may require a feature that its family cannot write",
        "actors/config/dialects.py:custom_dialect",
        "_contradiction_errors(profile)",
        "()",
        ("tests/config/test_config.py::test_an_invalid_dialect_is_refused_with_a_one_line_error",),
    ),
    Mutation(
        "settings: a temperature is sent at any value",
        "actors/adapters/settings.py:_fit_values",
        "settings.temperature is not None and settings.temperature > rules.max_temperature",
        "False",
        ("tests/adapters/test_settings.py",),
    ),
    Mutation(
        "decode, openai_chat: an empty legacy call is a call",
        "actors/adapters/openai_chat/decode.py:ChatDecoder._process_message",
        'legacy and is_object(legacy) and (legacy.get("name") or legacy.get("arguments"))',
        '"function_call" in delta',
        ("tests/adapters/test_openai_chat_decode.py",),
    ),
    Mutation(
        "decode, openai_chat: calls under one index are distinguished only by position",
        "actors/adapters/calls.py:CallTable._continues_call",
        "bool(native_id and call.native_id and (native_id != call.native_id))",
        "False",
        ("tests/adapters/test_openai_chat_decode.py",),
    ),
    Mutation(
        "decode: a call with cut arguments is a call without any",
        "actors/adapters/assembly.py:MessageBuilder._end_call",
        "self._is_cut and (not call.is_whole)",
        "False",
        ("tests/adapters/test_cut_calls.py",),
    ),
    Mutation(
        "decode: a call is complete before a cut can be detected",
        "actors/adapters/assembly.py:MessageBuilder.end_part",
        "part is self._parts[-1] and self.finish_reason is None",
        "False",
        ("tests/adapters/test_cut_calls.py",),
    ),
    Mutation(
        "decode: a call without arguments is kept from a broken stream",
        "actors/adapters/partial.py:PartialCall.is_keepable",
        "self.done and bool(self.wire_name) and (self.ended or self.is_marked_complete or self.is_whole)",
        "self.done",
        ("tests/adapters/test_cut_calls.py",),
    ),
    Mutation(
        "decode: the block of an unfinished call ends normally",
        "actors/adapters/assembly.py:MessageBuilder.end_part",
        "not has_marker and isinstance(part, PartialCall) and (not (part.dropped or part.is_whole or self._is_cut))",
        "False",
        ("tests/adapters/test_cut_calls.py",),
    ),
    Mutation(
        "decode, anthropic: a second message start continues the first",
        "actors/adapters/anthropic/decode.py:MessagesDecoder._begin_message",
        "self.restart()",
        "pass",
        ("tests/adapters/test_anthropic_decode.py",),
    ),
    Mutation(
        "decode: a restarted answer gives a call the number of a discarded one",
        "actors/adapters/assembly.py:MessageBuilder.reset_parts",
        "self._parts: list[Part] = []",
        """
        self._parts: list[Part] = []
        self._calls = 0
        """,
        ("tests/adapters/test_anthropic_decode.py",),
    ),
    Mutation(
        "decode, responses: an item of a provider's own tool is lost silently",
        "actors/adapters/responses/decode.py:ResponsesDecoder._complete_item",
        "_store_item(part, wire_item)",
        "pass",
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "decode, anthropic: a call of a server tool is sent back without its result",
        "actors/adapters/anthropic/decode.py:MessagesDecoder._pair_server_tools",
        "own_id not in called & answered or not _SERVER_ID.fullmatch(own_id)",
        "not _SERVER_ID.fullmatch(own_id)",
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "decode: a provider-specific part of a broken answer is kept",
        "actors/adapters/partial.py:ProviderPart.is_keepable",
        "self.done and isinstance(self.value, Media)",
        "self.done",
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "encode, openai_chat: reasoning has one field name for every host",
        "actors/adapters/openai_chat/encode.py:OpenAIChatWriter.__init__",
        'b\',"%b":"\' % dialect.reasoning.field.encode()',
        'b\',"reasoning_content":"\'',
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "decode, bedrock: cited text is dropped with its citations",
        "actors/adapters/converse.py:ConverseDecoder._process_delta",
        '"citationsContent" in delta',
        '"citationsContents" in delta',
        ("tests/adapters/test_left_out.py",),
    ),
    Mutation(
        "decode, gemini: the signature of a cut call remains alone",
        "actors/adapters/assembly.py:MessageBuilder._drop_call",
        "call.signature.seal = None",
        "pass",
        (GEMINI_DECODE,),
    ),
    Mutation(
        "decode, openai_chat: a lone end marker is an empty answer",
        "actors/adapters/openai_chat/decode.py:ChatDecoder.on_done",
        "not self._begun",
        "False",
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "request: a token limit of zero is accepted",
        "actors/core/settings/values.py:_is_whole_number",
        "type(value) is int and least <= value <= most",
        "type(value) is int",
        ("tests/adapters/test_encode.py",),
    ),
    Mutation(
        "responses: reasoning is sent although nothing follows it",
        "actors/core/render/walk.py:RenderWalk._allowed_reasoning",
        "rules.must_be_followed and blocks and ...",
        "False and ...",
        (f"{RESPONSES}::test_reasoning_without_a_following_item_is_omitted",),
    ),
    Mutation(
        "responses: reasoning has its id although the next item has none",
        "actors/adapters/responses/encode.py:_without_id",
        "_BEFORE_ID + item[match.end(1) :]",
        "item",
        ("tests/session/test_item_ids.py",),
    ),
    Mutation(
        "responses: reasoning keeps its id if it is not stored in the usual form",
        "actors/adapters/responses/encode.py:_without_id",
        'key != "id"',
        "key",
        (f"{RESPONSES}::test_a_reasoning_item_is_sent_without_its_id_in_whatever_form_it_is_stored",),
    ),
    Mutation(
        "responses: an item has its id although its reasoning has none",
        "actors/adapters/responses/encode.py:ResponsesWriter._next_id",
        "... if waited else self._has_ids",
        "... if waited else True",
        ("tests/session/test_item_ids.py",),
    ),
    Mutation(
        "responses: an item's id is sent twice",
        "actors/core/render/sealed.py:SentItems.must_withhold",
        "not self.admit(unquote(seal.data))",
        "False",
        ("tests/session/test_item_ids.py",),
    ),
    Mutation(
        "responses: an id that cannot be sent removes its reasoning",
        "actors/core/render/walk.py:RenderWalk._write_answer",
        "original = ...",
        "blocks = ...",
        ("tests/session/test_item_ids.py",),
    ),
    Mutation(
        "responses: a host that does not find ids receives them again",
        "actors/core/lanes/lane.py:begin_epoch",
        'old.without_ids or event.reason == "thinking"',
        "False",
        ("tests/session/test_item_ids.py",),
    ),
    Mutation(
        "responses: a reasoning item is sent twice",
        "actors/core/render/sealed.py:SentItems.admit",
        "item_id in self._new or item_id in self._usage.items",
        "False",
        (f"{RESPONSES}::test_a_repeated_reasoning_item_is_sent_only_once",),
    ),
    Mutation(
        "responses: reasoning items of earlier requests are forgotten",
        "actors/core/render/sealed.py:SentItems.admit",
        "item_id in self._new or item_id in self._usage.items",
        "item_id in self._new",
        (f"{RESPONSES}::test_a_repeated_reasoning_item_is_sent_only_once",),
    ),
    Mutation(
        "openrouter: a pinned upstream is not named in the request",
        "actors/adapters/openai_chat/encode.py:request_head",
        '{**..., "provider": _pin_upstream(settings, dialect, losses)}',
        "{**...}",
        ("tests/provider/test_gateways.py",),
    ),
    Mutation(
        "openrouter: a seal of a pinned upstream is assigned to the answering one",
        "actors/adapters/assembly.py:MessageBuilder._seal_origin",
        "self.binding.upstream or self.upstream",
        "self.upstream",
        (VENDORS,),
    ),
    Mutation(
        "openrouter: a seal of a pinned upstream is sent to another backend",
        "actors/core/render/sealed.py:replayable_upstream",
        "maker.backend == binding.backend and readable(block)",
        "readable(block)",
        (VENDORS,),
    ),
    Mutation(
        "responses: a call id may have any length",
        "actors/core/dialects/profiles.py:OPENAI_RESPONSES",
        'Ids(style="openai", pattern="[A-Za-z0-9_-]{1,64}", **...)',
        'Ids(style="openai", pattern="[A-Za-z0-9_-]+", **...)',
        (f"{RESPONSES}::test_requests_for_generated_histories_contain_no_item_id",),
    ),
    Mutation(
        "responses: a cut call is a call",
        "actors/adapters/responses/decode.py:ResponsesDecoder._process_end",
        'status == "incomplete"',
        "False",
        ("tests/adapters/test_responses_decode.py",),
    ),
    Mutation(
        "responses: encrypted content is taken from an announced item",
        "actors/adapters/responses/decode.py:ResponsesDecoder._begin_item",
        'item = _Item(kind, self.begin_text("thinking"))',
        """
        item = _Item(kind, self.begin_text("thinking"))
        self.attach_seal(item.part, "reasoning_item", _resendable_json(wire_item))
        item.part.done = True
        """,
        ("tests/adapters/test_responses_decode.py",),
    ),
    Mutation(
        "gemini: a response is sent without the id of its call",
        "actors/adapters/gemini.py:GeminiWriter.write_result",
        "_id_and_name_fields(call_id, name)",
        '_id_and_name_fields("", name)',
        (GEMINI_ENCODE,),
    ),
    Mutation(
        "gemini: a foreign step has its sentinel at the start of its content",
        "actors/core/render/order.py:add_required_reasoning",
        'kinds.index(ToolCall) if demand == "before_calls" else 0',
        "0",
        (GEMINI_ENCODE,),
    ),
    Mutation(
        "gemini: the signature of a blank text covers the next call",
        "actors/core/render/order.py:add_required_reasoning",
        "any((seal is None or seal.kind == dialect.reasoning.carrier for seal in seals))",
        "bool(seals)",
        (GEMINI_ENCODE,),
    ),
    Mutation(
        "gemini: a signature moves to every later part",
        "actors/adapters/gemini.py:GeminiWriter.write_part",
        "signature, self._signature = (self._signature, None)",
        "signature = self._signature",
        (GEMINI_ENCODE, GEMINI_TURNS),
    ),
    Mutation(
        "gemini: text continues in a signed part",
        "actors/adapters/gemini.py:GenerateContentDecoder._add_signed_text",
        'self._add_part_text("text", text, is_signed=True)',
        'self._add_part_text("text", text)',
        (GEMINI_DECODE,),
    ),
    Mutation(
        "gemini: a stream may end without a finish reason",
        "actors/adapters/gemini.py:GenerateContentDecoder.process_event",
        'candidate = first_candidate(payload.get("candidates"))',
        """
        candidate = first_candidate(payload.get("candidates"))
        self.ended = True
        """,
        (GEMINI_DECODE,),
    ),
    Mutation(
        "kimi: foreign calls are numbered from the start in each request",
        "actors/core/transcript/transcript.py:Projection._own_id",
        "max(self._index, int(ordinal[1]))",
        "len(self._new)",
        ("tests/core/test_kimi_ids.py",),
    ),
    Mutation(
        "kimi: calls without reasoning are sent unchanged",
        "actors/core/render/walk.py:RenderWalk._order_blocks",
        """
        if demands:
            ...
        """,
        """
        if False:
            ...
        """,
        (VENDORS,),
    ),
    Mutation(
        "order: omitted reasoning leaves its calls without any",
        "actors/core/render/walk.py:RenderWalk._order_blocks",
        "add_required_reasoning(bound, dialect, self._notes)",
        "list(bound)",
        ("tests/core/test_order.py",),
    ),
    Mutation(
        "neighbours: the final filler follows a result directly",
        "actors/core/render/walk.py:RenderWalk._write_filler_message",
        "self._begin_message(role)",
        """
        self._writer.begin(role)
        self._last_role = role
        """,
        (VENDORS,),
    ),
    Mutation(
        "mistral: no model message stands between a result and a user message",
        "actors/core/render/walk.py:RenderWalk._separate_user_message",
        'last == "tool" and turns.user_after_tool == "filler"',
        "False",
        (VENDORS,),
    ),
    Mutation(
        "mistral: reasoning is sent back beside the content",
        "actors/adapters/openai_chat/encode.py:OpenAIChatWriter._write_reasoning",
        'self._carrier == "thinking_chunk"',
        "False",
        (VENDORS,),
    ),
    Mutation(
        "walks: a tool invented by the model is declared afterwards",
        "actors/adapters/adapter.py:Adapter.prepare",
        "self.request_head(*..., NO_FACTS.tools if asked.tools else called_tools)",
        "self.request_head(*..., called_tools)",
        (WALKS,),
    ),
    Mutation(
        "openrouter: reasoning of every upstream is sent back",
        "actors/core/dialects/dialect.py:Profile.can_replay",
        'self.reasoning.binding == "model"',
        "True",
        (VENDORS,),
    ),
    Mutation(
        "openrouter: an id of one model is sent to another",
        "actors/core/transcript/transcript.py:Projection._provider_key",
        '(*..., binding.model if self._models else "")',
        '(*..., "")',
        (PROJECTION, f"{SCENARIO}[14.4]"),
    ),
    Mutation(
        "schemas: a choice at the root is sent",
        "actors/adapters/schemas/rooted.py:_RootFlattener._flatten",
        "{key: value for key, value in schema.items() if key not in _FLATTENED}",
        "dict(schema)",
        ("tests/adapters/test_tool_schemas.py",),
    ),
    Mutation(
        "schemas: requirements of one alternative apply to all",
        "actors/adapters/schemas/rooted.py:_shared_constraints",
        "[name for name in demands[0] if all((name in others for others in demands))]",
        "demands[0]",
        ("tests/adapters/test_tool_schemas.py",),
    ),
    Mutation(
        "gemini: a fragment of a call is taken for a call",
        "actors/adapters/gemini.py:GenerateContentDecoder._add_function_call",
        'wire_call.get("partialArgs") or wire_call.get("willContinue")',
        "False",
        (GEMINI_DECODE,),
    ),
    Mutation(
        "request: a budget is accepted without manual thinking",
        "actors/adapters/request.py:Settings.__post_init__",
        'budget is not None and self.thinking != "manual"',
        "False",
        ("tests/adapters/test_encode.py",),
    ),
    Mutation(
        "openai_chat: a failed result is not marked",
        "actors/adapters/openai_chat/encode.py:OpenAIChatWriter.write_result",
        "failed",
        "False",
        (TOLD,),
    ),
    Mutation(
        "responses: a failed result is not marked",
        "actors/adapters/responses/encode.py:ResponsesWriter.write_result",
        "failed",
        "False",
        (TOLD,),
    ),
    Mutation(
        "anthropic: a failed result is not flagged",
        "actors/adapters/anthropic/encode.py:AnthropicWriter.write_result",
        'b\',"is_error":true}\' if failed else b"}"',
        'b\',"is_error":true}\' if False else b"}"',
        (TOLD,),
    ),
    Mutation(
        "gemini: a failed result is an output",
        "actors/adapters/gemini.py:GeminiWriter.write_result",
        'b"error" if failed else b"output"',
        'b"output"',
        (TOLD,),
    ),
    Mutation(
        "bedrock: a failed result has succeeded",
        "actors/adapters/converse.py:ConverseWriter.write_result",
        "failed",
        "False",
        (TOLD,),
    ),
)
