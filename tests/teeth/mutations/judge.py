"""Mutations of the judge: its rules, its state between fragments, and its fast path."""

from tests.teeth.mutations.mutation import Mutation

RULES = ("tests/rules/test_rules.py::test_the_judge_finds_the_broken_rules_and_no_others",)
FOLD = ("tests/core/test_check_fold.py",)
CONVERSE = ("tests/core/test_check_converse.py",)
READINGS = ("tests/core/test_check_readings.py",)

_HOME = "actors/core/check/"


def _demands(what: str, place: str, old: str, new: str, tests: tuple[str, ...]) -> Mutation:
    return Mutation(f"check, {what}", f"{_HOME}{place}", old, new, tests)


def _reads(what: str, place: str, old: str, new: str) -> Mutation:
    return Mutation(f"first reading: {what}", f"{_HOME}{place}", old, new, READINGS)


MUTATIONS: tuple[Mutation, ...] = (
    _demands(
        "openai_chat: a call may stay open",
        "openai_chat.py:OpenAIChat._begin",
        """
        if self.due:
            self.fault_unanswered(f"before this {role} message")
        """,
        "self.due.clear()",
        RULES,
    ),
    _demands(
        "a call may stay open at the end",
        "state.py:CheckState.finish",
        """
        if self.due:
            self.fault_unanswered("at the end")
        """,
        "",
        RULES,
    ),
    _demands(
        "openai_chat: a second result passes",
        "openai_chat.py:OpenAIChat._result",
        "del self.due[call_id]",
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
        "openai_chat.py:OpenAIChat._begin",
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
        "state.py:Turns.answer",
        "self.mixed",
        "False",
        RULES,
    ),
    _demands(
        "anthropic: a copy's call turn may lack its thinking",
        "anthropic.py:Anthropic._tool_use",
        'not self.thinks and self.dialect.reasoning.required == "with_calls"',
        "False",
        RULES,
    ),
    _demands(
        "bedrock: two documents may have the same name",
        "converse.py:Converse._check_title",
        "name in self.titles",
        "False",
        RULES,
    ),
    _demands(
        "bedrock: a document in an earlier message needs no text",
        "converse.py:Converse.begin",
        """
        if self.documented:
            self._check_documents()
        """,
        "",
        RULES,
    ),
    _demands(
        "bedrock: a text of an earlier message counts for a document",
        "converse.py:Converse.begin",
        "self.mixed = self.thinks = self.documented = self.worded = False",
        "self.mixed = self.thinks = self.documented = False",
        RULES,
    ),
    _demands(
        "bedrock: an image before a result is ignored",
        "converse.py:Converse._image",
        "self.mixed = True",
        "",
        RULES,
    ),
    _demands(
        "bedrock: reasoning of an earlier message counts for this one",
        "converse.py:Converse.begin",
        "self.mixed = self.thinks = self.documented = self.worded = False",
        "self.mixed = self.documented = self.worded = False",
        RULES,
    ),
    _demands(
        "bedrock: a source may be empty",
        "converse.py:Converse._media",
        "len(source) != 1 or type(data) is not str or (not data)",
        "len(source) > 1 or type(data) is not str",
        RULES,
    ),
    _demands(
        "bedrock: results alone need no declared tool",
        "converse.py:Converse._result",
        "self.called = True",
        "",
        RULES,
    ),
    _demands(
        "responses: outputs may stand anywhere",
        "responses.py:Responses._answer",
        "call_id in self.stale",
        "False",
        RULES,
    ),
    _demands(
        "responses: reasoning may stand alone",
        "responses.py:Responses._follow_with",
        "self.thinks is not None and (not by_model)",
        "False",
        RULES,
    ),
    _demands(
        "responses: an item may have an id that its reasoning lacks",
        "responses.py:Responses._follow_with",
        "identified and (not self.thinks)",
        "False",
        RULES,
    ),
    _demands(
        "responses: a reference needs no stored item",
        "responses.py:Responses._reference",
        'item["type"] == "item_reference" and (not self.stores)',
        "False",
        RULES,
    ),
    _demands(
        "gemini: results after other parts pass",
        "gemini.py:Gemini._check_answer",
        "self.mixed",
        "False",
        RULES,
    ),
    _demands(
        "gemini: a first call without a signature passes",
        "gemini.py:Gemini._call",
        'not self.due and (not signed) and (self.dialect.reasoning.required == "before_calls")',
        "not self.due and False",
        RULES,
    ),
    _demands(
        "an id may be used twice",
        "state.py:CheckState.open_call",
        'call_id in self.due or (taken and self.dialect.ids.unique_scope == "transcript")',
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
        "(dict(self.due), *...)",
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
        "self.used = self.used.update(self.fresh)",
        "pass",
        FOLD,
    ),
    _demands(
        "attachments of earlier fragments are forgotten",
        "state.py:CheckState.copy",
        "copied.due, copied.answered, copied.fresh, copied.faults = ...",
        """
        copied.media = copied.documents = 0
        copied.due, copied.answered, copied.fresh, copied.faults = ...
        """,
        CONVERSE,
    ),
    _demands(
        "names of documents in earlier fragments are forgotten",
        "state.py:CheckState.copy",
        "copied.due, copied.answered, copied.fresh, copied.faults = ...",
        """
        vars(copied).pop("titles", None)
        copied.due, copied.answered, copied.fresh, copied.faults = ...
        """,
        CONVERSE,
    ),
    _demands(
        "faults keep native ids",
        "__init__.py:canonical",
        "[_with_canonical_ids(fault, known, calls) if fault.call_ids else fault for fault in faults]",
        "list(faults)",
        ("tests/core/test_check_canonical.py",),
    ),
    Mutation(
        "the two readings are never compared",
        "tests/readings.py:_accept_if_equal",
        'quick is not None and (whole is None or vars(quick) | {"strict": True} != vars(whole))',
        "False",
        ("tests/core/test_check_readings.py::test_a_disagreement_of_the_readings_is_reported",),
    ),
    _reads(
        "a fault does not stop the fast path",
        "__init__.py:extend_quickly",
        "None if read.faults else read",
        "read",
    ),
    _reads(
        "it alone reads a request that repeats an epoch",
        "__init__.py:extend",
        "not whole and (quick := extend_quickly(state, *pieces)) is not None",
        "(quick := extend_quickly(state, *pieces)) is not None",
    ),
    _reads(
        "a long text may be blank",
        "__init__.py:_stand_in",
        "piece[:1] != b'\"' or piece[1] not in _VISIBLE or len(piece) > _TOO_LONG",
        "piece[:1] != b'\"' or len(piece) > _TOO_LONG",
    ),
    _reads(
        "a long text may be of any length",
        "__init__.py:_stand_in",
        "piece[:1] != b'\"' or piece[1] not in _VISIBLE or len(piece) > _TOO_LONG",
        "piece[:1] != b'\"' or piece[1] not in _VISIBLE",
    ),
    _reads("a long text may end anywhere", "__init__.py:_stand_in", "piece[last:]", "b'\"'"),
    _reads("arguments may be any text", "state.py:why_no_object", "_QUICK.decode(text)", "{}"),
    _demands(
        "openai_chat: results are not recorded",
        "openai_chat.py:OpenAIChat.read",
        'self._result(value["tool_call_id"] if "tool_call_id" in value else None)',
        "pass",
        RULES,
    ),
    _demands(
        "mistral: thinking may follow text",
        "openai_chat.py:OpenAIChat._content",
        "sorted(thinks, reverse=True) != thinks",
        "False",
        RULES,
    ),
    _demands(
        "anthropic: thinking needs no signature",
        "anthropic.py:Anthropic._thinking",
        'type(signature) is not str or not (signature or rules.required == "with_calls")',
        'False and (not (signature or rules.required == "with_calls"))',
        RULES,
    ),
    _demands(
        "anthropic: a failed result may be blank",
        "anthropic.py:Anthropic._result",
        "failed is True and (not content.strip())",
        "False",
        RULES,
    ),
    _demands(
        "anthropic: a blank text passes",
        "anthropic.py:Anthropic._text",
        "len(block) != 2 or self.ragged or (not text) or (type(text) is not str)",
        "len(block) != 2 or type(text) is not str",
        RULES,
    ),
    _demands(
        "responses: reasoning always counts as sealed",
        "responses.py:Responses._reasoning",
        "not (type(state) is str and state) and (not self.stores)",
        "False",
        RULES,
    ),
    _demands(
        "gemini: a signature is not checked",
        "gemini.py:Gemini.block",
        'self._check_signature(part["thoughtSignature"])',
        "pass",
        RULES,
    ),
    _demands(
        "gemini: a part of two kinds counts as the first",
        "gemini.py:Gemini.block",
        "len(held) != 1",
        "not held",
        RULES,
    ),
    _demands(
        "gemini: keys beyond those of a call pass",
        "state.py:CheckState.fields",
        "type(value) is not dict or value.keys() - shape",
        "type(value) is not dict",
        RULES,
    ),
    _demands(
        "bedrock: a result may have any status",
        "converse.py:Converse._result",
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
        "converse.py:Converse._reasoning",
        "len(held) != 1 or type(data) is not str or (not data)",
        "not held or type(data) is not str or (not data)",
        RULES,
    ),
)
