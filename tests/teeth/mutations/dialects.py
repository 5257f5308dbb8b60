"""Mistakes in what the dialects demand and how they are written, read and judged."""

from tests.teeth.mutations.mutation import Mutation

PROJECTION = "tests/core/test_projection.py"
CHECK = "tests/core/test_check.py"
FOLD = "tests/core/test_check_fold.py"
RESPONSES = "tests/adapters/test_responses_encode.py"
GEMINI_CHECK = "tests/core/test_check_gemini.py"
GEMINI_ENCODE = "tests/adapters/test_gemini_encode.py"
GEMINI_DECODE = "tests/adapters/test_gemini_decode.py"
GEMINI_TURNS = "tests/testing/test_loopback_gemini_turns.py"
VENDORS = "tests/adapters/test_vendors.py"
SCENARIO = "tests/scenarios/test_scenarios.py::test_our_request_is_accepted_and_has_the_valid_shape"
GENERATED = "tests/test_generated_histories.py::test_no_generated_history_is_refused_in_any_dialect[0]"
WALKS = "tests/test_walks.py::test_no_request_of_a_random_walk_is_refused_or_changes_what_was_sent[0]"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "bedrock: tools that were called are not declared once they are off",
        "actors/adapters/converse/encode.py",
        'tools = settings.tools or [ToolSpec(name, "", _ANY_INPUT) for name in sorted(called)]',
        "tools = settings.tools",
        ("tests/adapters/test_converse_encode.py",),
    ),
    Mutation(
        "bedrock: ids in the form of another provider",
        "actors/core/projection.py",
        'return f"tooluse_{digest[:22]}"',
        'return f"call_{digest[:24]}"',
        ("tests/core/test_check_converse.py",),
    ),
    Mutation(
        "bedrock: a blank result goes as it is",
        "actors/adapters/converse/encode.py",
        "blank = json[1] in _MAYBE_BLANK and not unquote(json).strip()",
        "blank = False",
        ("tests/adapters/test_converse_encode.py", GENERATED),
    ),
    Mutation(
        "bedrock: a stream that is cut before its end passes",
        "actors/adapters/converse/decode.py",
        "        if event is END:\n            self.ended = self._stopped",
        "        if event is END:\n            self.ended = True",
        ("tests/adapters/test_converse_decode.py",),
    ),
    Mutation(
        "bedrock: a frame's checksum is not looked at",
        "actors/adapters/converse/frames.py",
        "if crc32(frame[:-_CRC]) != unpack_from",
        "if False and crc32(frame[:-_CRC]) != unpack_from",
        ("tests/test_outside_frames.py",),
    ),
    Mutation(
        "bedrock: only the first segment of a body is signed",
        "actors/credentials/aws.py",
        "for segment in request.segments:",
        "for segment in request.segments[:1]:",
        ("tests/test_credentials_aws.py",),
    ),
    Mutation(
        "assembly: a call is done again when arguments follow",
        "actors/adapters/assembly.py",
        "isinstance(part, Call) and not part.ended:",
        "isinstance(part, Call) and not part.done:",
        ("tests/adapters/test_openai_chat_decode.py",),
    ),
    Mutation(
        "decode: a reason to stop that is a failure is an empty answer",
        "actors/adapters/base.py",
        "    if not stands:\n",
        "    if False:\n",
        ("tests/adapters/test_reasons_to_stop.py",),
    ),
    Mutation(
        "decode: an error written among the events as plain JSON is a cut stream",
        "actors/adapters/sse.py",
        "        elif self._stray or line.startswith",
        "        elif False and line.startswith",
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "decode, anthropic: an error in a relay's own form is passed over",
        "actors/adapters/anthropic/decode.py",
        '        elif payload.get("error") or event.name == "error":',
        "        elif False:",
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "provider: reasoning withheld in silence is nobody's fault",
        "actors/provider.py",
        "        if withheld := self._decoder.withheld:  # it took the request",
        "        if withheld := ():  # it took the request",
        ("tests/test_provider.py::test_reasoning_that_a_provider_withheld_is_counted_as_a_refusal_is",),
    ),
    Mutation(
        "anthropic: thinking that a copy did not sign is nobody's to send back",
        "actors/adapters/anthropic/decode.py",
        "part.seal is None and self._unsigned:",
        "part.seal is None and False:",
        ("tests/test_anthropic_copies.py",),
    ),
    Mutation(
        "config: a dialect may demand what its family cannot write",
        "actors/config/dialects.py",
        "    if (reason := impossible(made)) is not None:",
        "    if (reason := None) is not None:",
        ("tests/test_config.py::test_a_dialect_that_cannot_be_is_refused_in_one_line",),
    ),
    Mutation(
        "settings: a temperature is sent however hot",
        "actors/adapters/settings.py",
        "(settings.temperature or 0) <= dialect.max_temperature",
        "True",
        ("tests/adapters/test_settings.py",),
    ),
    Mutation(
        "decode, openai_chat: an end marker alone is an empty answer",
        "actors/adapters/openai_chat/decode.py",
        "if not self._begun:",
        "if False:",
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "request: settings take a limit of no tokens",
        "actors/adapters/request.py",
        "type(value) is not int or value < 1",
        "type(value) is not int",
        ("tests/adapters/test_encode.py",),
    ),
    Mutation(
        "responses: reasoning is sent although nothing follows it",
        "actors/core/render/tidy.py",
        "    while _dangles(blocks, room.dialect):",
        "    while False:",
        (f"{RESPONSES}::test_reasoning_that_nothing_follows_is_left_out",),
    ),
    Mutation(
        "responses: a reasoning item is sent twice",
        "actors/core/projection.py",
        "        if item_id in self._items or item_id in self._spent.items:",
        "        if False:",
        (f"{RESPONSES}::test_a_reasoning_item_goes_out_once_in_an_epoch",),
    ),
    Mutation(
        "responses: reasoning items of earlier requests are forgotten",
        "actors/core/projection.py",
        "item_id in self._items or item_id in self._spent.items",
        "item_id in self._items",
        (f"{RESPONSES}::test_a_reasoning_item_goes_out_once_in_an_epoch",),
    ),
    Mutation(
        "openrouter: a pinned upstream is not named in the request",
        "actors/adapters/openai_chat/encode.py",
        "    head += _pin(settings, dialect, losses)\n",
        "",
        ("tests/test_gateways.py",),
    ),
    Mutation(
        "openrouter: what a pinned upstream sealed is its answer's",
        "actors/adapters/assembly.py",
        "served = self._binding.upstream or self.upstream",
        "served = self.upstream",
        (VENDORS,),
    ),
    Mutation(
        "openrouter: what a pinned upstream sealed goes to who serves another backend",
        "actors/core/render/thinking.py",
        "if maker.backend == binding.backend and _own(",
        "if _own(",
        (VENDORS,),
    ),
    Mutation(
        "responses: a call id may be as long as it likes",
        "actors/core/profiles/responses.py",
        '    id_pattern=r"[A-Za-z0-9_-]{1,64}",',
        '    id_pattern=r"[A-Za-z0-9_-]+",',
        (f"{RESPONSES}::test_generated_histories_send_no_item_id",),
    ),
    Mutation(
        "responses: a call that was cut is a call",
        "actors/adapters/responses/decode.py",
        '        if status == "incomplete":',
        "        if False:",
        ("tests/adapters/test_responses_decode.py",),
    ),
    Mutation(
        "responses: encrypted content is taken from an item that is only announced",
        "actors/adapters/responses/decode.py",
        '            item.part = self.assembly.words("thinking")\n        elif',
        '            item.part = self.assembly.words("thinking")\n'
        '            self.assembly.seal(item.part, "reasoning_item", _again(told))\n'
        "            item.part.done = True\n        elif",
        ("tests/adapters/test_responses_decode.py",),
    ),
    Mutation(
        "gemini: a response goes without the id of its call",
        "actors/adapters/gemini/encode.py",
        'opening = b\'{"functionResponse":{%b,"response":{"%b":\' % (_identified(id, name), key)',
        'opening = b\'{"functionResponse":{%b,"response":{"%b":\' % (_identified("", name), key)',
        (GEMINI_ENCODE,),
    ),
    Mutation(
        "gemini: a foreign step gets a sentinel at the head of its content",
        "actors/core/render/order.py",
        'at = kinds.index(WireCall) if demand == "before_calls" else 0',
        "at = 0",
        (GEMINI_ENCODE,),
    ),
    Mutation(
        "gemini: the signature of a blank text stands for the call behind it",
        "actors/core/render/order.py",
        "(block.seal is None or block.seal.kind == dialect.thinking_carrier)",
        "True",
        (GEMINI_ENCODE,),
    ),
    Mutation(
        "gemini: a signature moves to every later part",
        "actors/adapters/gemini/encode.py",
        "            yield block, signature\n            signature = None\n            continue",
        "            yield block, signature\n            continue",
        (GEMINI_ENCODE, GEMINI_TURNS),
    ),
    Mutation(
        "gemini: text goes on in a signed part",
        "actors/adapters/gemini/decode.py",
        '            self._words("text", text)\n        self._open = None',
        '            self._words("text", text)',
        (GEMINI_DECODE,),
    ),
    Mutation(
        "gemini: a stream may end without a finish reason",
        "actors/adapters/gemini/decode.py",
        "        self.ended = False\n",
        "        self.ended = True\n",
        (GEMINI_DECODE,),
    ),
    Mutation(
        "kimi: numbers of foreign calls begin anew with each request",
        "actors/core/projection.py",
        "self._index = max(self._index + 1, _ordinal(emitted) + 1)",
        "self._index = len(self._new)",
        ("tests/core/test_kimi_ids.py",),
    ),
    Mutation(
        "kimi: calls without reasoning go as they are",
        "actors/core/render/order.py",
        'if demand == "no" else',
        "if True else",
        (VENDORS,),
    ),
    Mutation(
        "order: reasoning that stays behind leaves its calls without any",
        "actors/core/render/order.py",
        "_supplied(_standing(said, shown, notes), dialect)",
        "_standing(said, shown, notes)",
        ("tests/core/test_order.py",),
    ),
    Mutation(
        "neighbours: the filler at the end follows a result directly",
        "actors/core/render/neighbours.py",
        "(*_between(last_role, dialect), _filler(dialect.filler_last))",
        "(_filler(dialect.filler_last),)",
        (VENDORS,),
    ),
    Mutation(
        "mistral: the model says nothing between a result and a user",
        "actors/core/render/neighbours.py",
        'needed = dialect.user_after_tool == "filler"',
        "needed = False",
        (VENDORS,),
    ),
    Mutation(
        "mistral: reasoning goes back beside the content",
        "actors/adapters/openai_chat/encode.py",
        'if thoughts and self._carrier == "thinking_chunk":',
        "if False:",
        (VENDORS,),
    ),
    Mutation(
        "walks: a tool that the model invented is declared from then on",
        "actors/adapters/converse/encode.py",
        'tools = settings.tools or [ToolSpec(name, "", _ANY_INPUT) for name in sorted(called)]',
        'tools = (*settings.tools, *(ToolSpec(name, "", _ANY_INPUT) for name in sorted(called)))',
        (WALKS,),
    ),
    Mutation(
        "openrouter: reasoning of every upstream goes back",
        "actors/core/dialect.py",
        'if self.thinking_binding == "upstream" and sealed_by.upstream != reader.upstream:',
        "if False:",
        (VENDORS,),
    ),
    Mutation(
        "openrouter: an id of one model goes to another",
        "actors/core/projection.py",
        'binding.model if self._models else "")',
        '"")',
        (PROJECTION, f"{SCENARIO}[14.4-openrouter-both]"),
    ),
    Mutation(
        "schemas: a choice at the root is sent",
        "actors/adapters/schemas.py",
        "        made = {key: value for key, value in schema.items() if key not in _FLATTENED}",
        "        made = dict(schema)",
        ("tests/adapters/test_tool_schemas.py",),
    ),
    Mutation(
        "schemas: what one arm demands is demanded of all",
        "actors/adapters/schemas.py",
        "    return [name for name in first if name in second]",
        "    return first",
        ("tests/adapters/test_tool_schemas.py",),
    ),
    Mutation(
        "gemini: a piece of a call is taken for a call",
        "actors/adapters/gemini/decode.py",
        'if given.get("partialArgs") or given.get("willContinue"):',
        "if False:",
        (GEMINI_DECODE,),
    ),
    Mutation(
        "request: a budget may stand without manual thinking",
        "actors/adapters/request.py",
        'if budget is not None and self.thinking != "manual":',
        "if False:",
        ("tests/adapters/test_encode.py",),
    ),
)
