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
        "bedrock: a result after other content passes the judge",
        "actors/core/check/converse.py",
        "        if self.mixed:\n",
        "        if False:\n",
        (CHECK,),
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
        "decode, openai_chat: an end marker alone is an empty answer",
        "actors/adapters/openai_chat/decode.py",
        "if not self._begun:",
        "if False:",
        ("tests/adapters/test_decode_cuts.py",),
    ),
    Mutation(
        "check, openai_chat: a limit of no tokens is judged to be one",
        "actors/core/check/openai_chat.py",
        "(type(limit) is not int or limit < 1)",
        "type(limit) is not int",
        (CHECK,),
    ),
    Mutation(
        "request: settings take a limit of no tokens",
        "actors/adapters/request.py",
        "type(most) is not int or most < 1",
        "type(most) is not int",
        ("tests/adapters/test_encode.py",),
    ),
    Mutation(
        "responses: reasoning is sent although nothing follows it",
        "actors/core/render/tidy.py",
        "    while _dangles(blocks, dialect):",
        "    while False:",
        (f"{RESPONSES}::test_reasoning_that_nothing_follows_is_left_out",),
    ),
    Mutation(
        "responses: a reasoning item is sent twice",
        "actors/core/projection.py",
        "        if not self._free(named):",
        "        if False:",
        (f"{RESPONSES}::test_a_reasoning_item_goes_out_once_in_the_life_of_a_lane",),
    ),
    Mutation(
        "responses: words stand between a call and its output",
        "actors/adapters/responses/encode.py",
        "    yield from (*words, *calls)",
        "    yield from (*calls, *words)",
        (f"{RESPONSES}::test_words_come_before_calls_each_behind_its_own_reasoning",),
    ),
    Mutation(
        "responses: a call id may be as long as it likes",
        "actors/core/profiles/responses.py",
        '    id_pattern=r"[A-Za-z0-9_-]{1,64}",',
        '    id_pattern=r"[A-Za-z0-9_-]+",',
        (f"{RESPONSES}::test_generated_histories_send_no_item_id_but_that_of_reasoning",),
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
        "check, responses: outputs may stand anywhere",
        "actors/core/check/responses.py",
        "            if call_id in self.stale:",
        "            if False:",
        ("tests/core/test_check_responses.py",),
    ),
    Mutation(
        "check, responses: reasoning may stand alone",
        "actors/core/check/responses.py",
        "        if self.thinks and not by_model:",
        "        if False:",
        ("tests/core/test_check_responses.py",),
    ),
    Mutation(
        "check, responses: item ids may be sent",
        "actors/core/check/responses.py",
        '        if kind not in ("reasoning", "compaction"):',
        "        if False:",
        ("tests/core/test_check_responses.py",),
    ),
    Mutation(
        "gemini: Vertex AI gets back the ids it gave",
        "actors/core/profiles/gemini.py",
        "    native_id_passthrough=False,",
        "    native_id_passthrough=True,",
        (GEMINI_ENCODE,),
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
        "actors/core/render/thinking.py",
        'at = first_call if dialect.thinking_required == "before_calls" else 0',
        "at = 0",
        (GEMINI_ENCODE,),
    ),
    Mutation(
        "gemini: the signature of a blank text stands for the call behind it",
        "actors/core/render/thinking.py",
        "return before.seal is None or before.seal.kind == dialect.thinking_carrier",
        "return True",
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
        "check, gemini: results behind other parts are let through",
        "actors/core/check/gemini.py",
        "        if self.mixed:\n",
        "        if False:\n",
        (GEMINI_CHECK,),
    ),
    Mutation(
        "check, gemini: a first call without a signature is let through",
        "actors/core/check/gemini.py",
        'if self.dialect.thinking_required == "before_calls" and not part.get("thoughtSignature"):',
        "if False:",
        (GEMINI_CHECK,),
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
        "actors/core/render/thinking.py",
        'if dialect.thinking_required == "no":',
        "if True:",
        (VENDORS,),
    ),
    Mutation(
        "mistral: the model says nothing between a result and a user",
        "actors/core/render/neighbours.py",
        'return dialect.user_after_tool == "filler"',
        "return False",
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
        "check, mistral: a user may follow a result",
        "actors/core/check/openai_chat.py",
        'elif role == "user" and self.role == "tool" and dialect.user_after_tool == "filler":',
        "elif False:",
        ("tests/core/test_check_vendors.py",),
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
        "openrouter: ids that only some upstreams take",
        "actors/core/profiles/vendors.py",
        'id_style="mistral",  # its upstreams',
        'id_style="openai",  # its upstreams',
        (f"{SCENARIO}[14.3-openrouter-both]",),
    ),
    Mutation(
        "openrouter: an id of one model goes to another",
        "actors/core/projection.py",
        'binding.model if self._models else "")',
        '"")',
        (PROJECTION, f"{SCENARIO}[14.4-openrouter-both]"),
    ),
)
