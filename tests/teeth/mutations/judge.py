"""Mutations of the judge: its rules, its state between fragments, and its fast path."""

from tests.teeth.mutations.mutation import Mutation

RULES = (
    "tests/rules/test_rules.py::test_the_checker_finds_the_rules_that_a_request_breaks_and_no_other_rules",
)
FOLD = ("tests/core/test_check_fold.py",)
CONVERSE = ("tests/core/test_check_converse.py",)
READINGS = ("tests/core/test_check_readings.py",)
USUAL = (
    "tests/core/test_check_readings.py::test_the_fast_parser_rejects_messages_of_usual_types_that_break_a_rule",
)

_HOME = "actors/core/check/"


def _demands(what: str, place: str, old: str, new: str, tests: tuple[str, ...]) -> Mutation:
    return Mutation(f"check, {what}", f"{_HOME}{place}", old, new, tests)


def _reads(what: str, place: str, old: str, new: str, tests: tuple[str, ...] = READINGS) -> Mutation:
    return Mutation(f"first reading: {what}", f"{_HOME}{place}", old, new, tests)


MUTATIONS: tuple[Mutation, ...] = (
    _demands(
        "openai_chat: a call may stay open",
        "openai_chat.py:OpenAIChat._begin_message",
        """
        if self.open_calls:
            self.report_unanswered(f"before this {role} message")
        """,
        "self.open_calls.clear()",
        RULES,
    ),
    _demands(
        "a call may stay open at the end",
        "state.py:CheckState.check_end",
        """
        if self.open_calls:
            self.report_unanswered("at the end")
        """,
        "",
        RULES,
    ),
    _demands(
        "openai_chat: a second result passes",
        "openai_chat.py:OpenAIChat._check_result",
        "del self.open_calls[call_id]",
        "",
        RULES,
    ),
    _demands(
        "openai_chat: the developer role is accepted everywhere",
        "openai_chat.py:OpenAIChat.__init__",
        "dialect.turns.developer_role",
        "True",
        RULES,
    ),
    _demands(
        "mistral: a user message may follow a result",
        "openai_chat.py:OpenAIChat._begin_message",
        'role == "user" and self.role == "tool" and (rules.user_after_tool == "filler")',
        "False",
        RULES,
    ),
    _demands(
        "kimi: a type is allowed beside a choice",
        "openai_chat.py:_moonshot_faults",
        '"type" in schema and chosen',
        "False",
        RULES,
    ),
    _demands(
        "anthropic, bedrock: a result may follow other content",
        "messages.py:AlternatingTurnsState.close_call",
        "self.has_other_blocks",
        "False",
        RULES,
    ),
    _demands(
        "anthropic: a copy's call turn may lack its thinking",
        "anthropic.py:Anthropic._check_tool_use",
        'not self.begins_with_thinking and self.dialect.reasoning.required == "with_calls"',
        "False",
        RULES,
    ),
    _demands(
        "bedrock: two documents may have the same name",
        "converse.py:Converse._check_title",
        "name in self.document_names",
        "False",
        RULES,
    ),
    _demands(
        "bedrock: a document in an earlier message needs no text",
        "converse.py:Converse.begin_message",
        """
        if self.has_document:
            self._check_documents()
        """,
        "",
        RULES,
    ),
    _demands(
        "bedrock: a text of an earlier message counts for a document",
        "converse.py:Converse.begin_message",
        "self.has_other_blocks = self.has_reasoning = self.has_document = self.has_text = False",
        "self.has_other_blocks = self.has_reasoning = self.has_document = False",
        RULES,
    ),
    _demands(
        "bedrock: an image before a result is ignored",
        "converse.py:Converse._check_image_block",
        "self.has_other_blocks = True",
        "",
        RULES,
    ),
    _demands(
        "bedrock: reasoning of an earlier message counts for this one",
        "converse.py:Converse.begin_message",
        "self.has_other_blocks = self.has_reasoning = self.has_document = self.has_text = False",
        "self.has_other_blocks = self.has_document = self.has_text = False",
        RULES,
    ),
    _demands(
        "bedrock: a source may be empty",
        "converse.py:Converse._check_media",
        "len(source) != 1 or type(data) is not str or (not data)",
        "len(source) > 1 or type(data) is not str",
        RULES,
    ),
    _demands(
        "bedrock: results alone need no declared tool",
        "converse.py:Converse._check_result",
        "self.has_tool_blocks = True",
        "",
        RULES,
    ),
    _demands(
        "responses: outputs may stand anywhere",
        "responses.py:Responses._match_output",
        "call_id in self.stale_calls",
        "False",
        RULES,
    ),
    _demands(
        "responses: reasoning may stand alone",
        "responses.py:Responses._check_order",
        "self.reasoning_has_id is not None and (not by_model)",
        "False",
        RULES,
    ),
    _demands(
        "responses: an item may have an id that its reasoning lacks",
        "responses.py:Responses._check_order",
        "identified and (not self.reasoning_has_id)",
        "False",
        RULES,
    ),
    _demands(
        "responses: a reference needs no stored item",
        "responses.py:Responses._check_reference",
        'item["type"] == "item_reference" and (not self.stores_response)',
        "False",
        RULES,
    ),
    _demands(
        "gemini: results after other parts pass",
        "gemini.py:Gemini._check_answer",
        "self.has_other_blocks",
        "False",
        RULES,
    ),
    _demands(
        "gemini: a first call without a signature passes",
        "gemini.py:Gemini._check_call",
        'not self.open_calls and (not signed) and (self.dialect.reasoning.required == "before_calls")',
        "not self.open_calls and False",
        RULES,
    ),
    _demands(
        "an id may be used twice",
        "state.py:CheckState.open_call",
        'call_id in self.open_calls or (taken and self.dialect.ids.unique_scope == "transcript")',
        "False",
        RULES,
    ),
    _demands(
        "a limit of zero tokens passes",
        "state.py:CheckState.check_limit",
        "type(limit) is not int or limit < 1",
        "type(limit) is not int",
        RULES,
    ),
    _demands(
        "a choice at the root of a tool's schema passes",
        "state.py:CheckState.check_schema",
        "refused",
        "()",
        RULES,
    ),
    _demands(
        "open calls are forgotten between fragments",
        "state.py:CheckState.copy",
        "(dict(self.open_calls), *...)",
        "({}, *...)",
        FOLD,
    ),
    _demands(
        "a branch of a state changes its trunk",
        "state.py:CheckState.copy",
        "object.__new__(type(self))",
        "self",
        FOLD,
    ),
    _demands(
        "ids of earlier fragments may be reused",
        "state.py:CheckState.split_faults",
        "self.used_ids = self.used_ids.update(self.new_ids)",
        "pass",
        FOLD,
    ),
    _demands(
        "attachments of earlier fragments are forgotten",
        "state.py:CheckState.copy",
        "copied.new_ids, copied.faults = ...",
        """
        copied.media_count = copied.document_count = 0
        copied.new_ids, copied.faults = ...
        """,
        CONVERSE,
    ),
    _demands(
        "names of documents in earlier fragments are forgotten",
        "state.py:CheckState.copy",
        "copied.new_ids, copied.faults = ...",
        """
        vars(copied).pop("titles", None)
        copied.new_ids, copied.faults = ...
        """,
        CONVERSE,
    ),
    _demands(
        "faults keep native ids",
        "__init__.py:with_canonical_ids",
        "[_with_canonical_ids(fault, canonical_id_of, all_call_ids) if fault.call_ids else fault for fault in faults]",
        "list(faults)",
        ("tests/core/test_check_canonical.py",),
    ),
    Mutation(
        "the two readings are never compared",
        "tests/readings.py:_accept_if_equal",
        'quick is not None and (whole is None or vars(quick) | {"strict": True} != vars(whole))',
        "False",
        (
            "tests/core/test_check_readings.py::test_the_test_judge_reports_a_disagreement_of_the_two_request_parsers",
        ),
    ),
    _reads(
        "a fault does not stop the fast path",
        "__init__.py:check_quickly",
        "None if read.faults else read",
        "read",
    ),
    _reads(
        "it alone reads a request that repeats an epoch",
        "__init__.py:check_fragment",
        "not strict and (quick := check_quickly(state, *pieces)) is not None",
        "(quick := check_quickly(state, *pieces)) is not None",
    ),
    _reads(
        "a long text may be blank",
        "__init__.py:_stand_in_for_text",
        "piece[:1] != b'\"' or piece[1] not in _VISIBLE or len(piece) > _TOO_LONG",
        "piece[:1] != b'\"' or len(piece) > _TOO_LONG",
    ),
    _reads(
        "a long text may be of any length",
        "__init__.py:_stand_in_for_text",
        "piece[:1] != b'\"' or piece[1] not in _VISIBLE or len(piece) > _TOO_LONG",
        "piece[:1] != b'\"' or piece[1] not in _VISIBLE",
    ),
    _reads("a long text may end anywhere", "__init__.py:_stand_in_for_text", "piece[last:]", "b'\"'"),
    _reads("arguments may be any text", "messages.py:non_object_reason", "_QUICK.decode(text)", "{}"),
    _reads(
        "usual arguments may be any text",
        "openai_chat.py:OpenAIChat._check_usual_calls",
        "non_object_reason(arguments, strict=False)",
        "False",
    ),
    _reads(
        "usual names may be any text",
        "openai_chat.py:OpenAIChat._check_usual_calls",
        "not self.is_name(name) or len(arguments) > self.max_length",
        "len(arguments) > self.max_length",
    ),
    _reads(
        "usual arguments may have any length",
        "openai_chat.py:OpenAIChat._check_usual_calls",
        "not self.is_name(name) or len(arguments) > self.max_length",
        "not self.is_name(name)",
    ),
    _reads(
        "usual calls may be in one message",
        "openai_chat.py:OpenAIChat._check_usual_calls",
        "not calls or (len(calls) > 1 and (not self.dialect.turns.calls_together))",
        "not calls",
        USUAL,
    ),
    _reads(
        "a usual message may be empty",
        "openai_chat.py:OpenAIChat._check_usual_calls",
        "calls is None and message.content",
        "calls is None",
    ),
    _reads(
        "a usual text may have any length",
        "openai_chat.py:OpenAIChat.check_usual",
        "message.content is not None and len(message.content) > self.max_length",
        "False",
    ),
    _reads(
        "dialects with reasoning have the same usual messages",
        "openai_chat.py:OpenAIChat.usual_messages",
        'reasoning.carrier == "none" and reasoning.required == "no"',
        "True",
    ),
    _reads(
        "the arguments of a usual call may be any bytes",
        "usual_blocks.py:_ToolUse.input",
        "dict[str, Any]",
        "dict[str, msgspec.Raw]",
        (f"{READINGS[0]}::test_the_fast_parser_rejects_a_usual_call_with_arguments_that_are_not_json",),
    ),
    _reads(
        "a usual error may be blank",
        "usual_blocks.py:UsualBlocksState._check_usual_user_block",
        "block.is_error and (not block.content.strip())",
        "False",
        USUAL,
    ),
    _reads(
        "a usual result may follow text",
        "usual_blocks.py:UsualBlocksState._check_usual_user_block",
        "is_blank_error or self.has_other_blocks or self.follows_unanswered",
        "is_blank_error or self.follows_unanswered",
        USUAL,
    ),
    _reads(
        "a usual result may be in a second message",
        "usual_blocks.py:UsualBlocksState._check_usual_user_block",
        "is_blank_error or self.has_other_blocks or self.follows_unanswered",
        "is_blank_error or self.has_other_blocks",
        READINGS,
    ),
    _reads(
        "a usual call may have any name",
        "usual_blocks.py:UsualBlocksState._check_usual_block",
        "not self.is_name(block.name)",
        "False",
        USUAL,
    ),
    _reads(
        "a usual call needs no thinking",
        "usual_blocks.py:UsualBlocksState._check_usual_block",
        'rules.required == "with_calls" and (not self.begins_with_thinking)',
        "False",
        USUAL,
    ),
    _reads(
        "usual thinking may follow text",
        "usual_blocks.py:UsualBlocksState._check_usual_block",
        "not self.begins_with_thinking and rules.must_be_first",
        "False",
        USUAL,
    ),
    _reads(
        "usual thinking needs no signature",
        "usual_blocks.py:UsualBlocksState._check_usual_block",
        'not block.signature or rules.carrier == "none"',
        'rules.carrier == "none"',
        USUAL,
    ),
    _reads(
        "usual thinking is accepted everywhere",
        "usual_blocks.py:UsualBlocksState._check_usual_block",
        'not block.signature or rules.carrier == "none"',
        "not block.signature",
        USUAL,
    ),
    _reads(
        "a usual text may be blank",
        "usual_blocks.py:UsualBlocksState._check_usual_text",
        "type(block) is not _Text or not block.text or block.text.isspace()",
        "type(block) is not _Text or not block.text",
        USUAL,
    ),
    _reads(
        "usual blocks may follow a pending server call",
        "usual_blocks.py:UsualBlocksState.check_usual",
        "self.pending_server_calls",
        "False",
        USUAL,
    ),
    _demands(
        "openai_chat: results are not recorded",
        "openai_chat.py:OpenAIChat.check_messages",
        'self._check_result(value["tool_call_id"] if "tool_call_id" in value else None)',
        "pass",
        RULES,
    ),
    _demands(
        "mistral: thinking may follow text",
        "openai_chat.py:OpenAIChat._check_content",
        "sorted(thinks, reverse=True) != thinks",
        "False",
        RULES,
    ),
    _demands(
        "anthropic: thinking needs no signature",
        "anthropic.py:Anthropic._check_thinking",
        'type(signature) is not str or not (signature or rules.required == "with_calls")',
        'False and (not (signature or rules.required == "with_calls"))',
        RULES,
    ),
    _demands(
        "anthropic: a failed result may be blank",
        "anthropic.py:Anthropic._check_result",
        "failed is True and (not content.strip())",
        "False",
        RULES,
    ),
    _demands(
        "anthropic: a blank text passes",
        "anthropic.py:Anthropic._check_text_block",
        "len(block) != 2 or self.ends_with_whitespace or (not text) or (type(text) is not str)",
        "len(block) != 2 or type(text) is not str",
        RULES,
    ),
    _demands(
        "responses: reasoning always counts as sealed",
        "responses.py:Responses._check_reasoning",
        "not (type(state) is str and state) and (not self.stores_response)",
        "False",
        RULES,
    ),
    _demands(
        "gemini: a signature is not checked",
        "gemini.py:Gemini.check_block",
        'self._check_signature(part["thoughtSignature"])',
        "pass",
        RULES,
    ),
    _demands(
        "gemini: a part of two kinds counts as the first",
        "gemini.py:Gemini.check_block",
        "len(held) != 1",
        "not held",
        RULES,
    ),
    _demands(
        "gemini: keys beyond those of a call pass",
        "state.py:CheckState.checked_fields",
        "type(value) is not dict or value.keys() - shape",
        "type(value) is not dict",
        RULES,
    ),
    _demands(
        "bedrock: a result may have any status",
        "converse.py:Converse._check_result",
        'result["status"] not in ("success", "error")',
        "False",
        RULES,
    ),
    _demands(
        "bedrock: a text may be blank",
        "converse.py:Converse._check_text",
        "not value or value.isspace()",
        "False",
        RULES,
    ),
    _demands(
        "bedrock: reasoning may be both plain and redacted",
        "converse.py:Converse._check_reasoning",
        "len(held) != 1 or type(data) is not str or (not data)",
        "not held or type(data) is not str or (not data)",
        RULES,
    ),
)
