"""Mistakes of the judge: in what it demands, in what it keeps between fragments, in its first reading."""

from tests.teeth.mutations.mutation import Mutation

CHECK = ("tests/core/test_check.py",)
FOLD = ("tests/core/test_check_fold.py",)
GEMINI = ("tests/core/test_check_gemini.py",)
RESPONSES = ("tests/core/test_check_responses.py",)
VENDORS = ("tests/core/test_check_vendors.py",)
CONVERSE = ("tests/core/test_check_converse.py",)
READINGS = ("tests/core/test_check_readings.py",)

_HOME = "actors/core/check/"


def _demands(what: str, module: str, old: str, new: str, tests: tuple[str, ...]) -> Mutation:
    return Mutation(f"check, {what}", f"{_HOME}{module}.py", old, new, tests)


def _reads(what: str, module: str, old: str, new: str) -> Mutation:
    return Mutation(f"first reading: {what}", f"{_HOME}{module}.py", old, new, READINGS)


MUTATIONS: tuple[Mutation, ...] = (
    _demands(
        "openai_chat: a call may stay open",
        "openai_chat",
        '        if self.due:\n            self.unanswered(f"before this {role} message")',
        "        self.due.clear()",
        CHECK,
    ),
    _demands(
        "a call may stay open at the end",
        "state",
        '        if self.due:\n            self.unanswered("at the end")\n',
        "",
        CHECK,
    ),
    _demands(
        "openai_chat: a second result passes",
        "openai_chat",
        "            del self.due[call_id]\n            self.answered[call_id] = None",
        "            self.answered[call_id] = None",
        CHECK,
    ),
    _demands(
        "openai_chat: the role developer exists everywhere",
        "openai_chat",
        "        if dialect.turns.developer_role:",
        "        if True:",
        VENDORS,
    ),
    _demands(
        "mistral: a user may follow a result",
        "openai_chat",
        'elif role == "user" and self.role == "tool" and rules.user_after_tool == "filler":',
        "elif False:",
        VENDORS,
    ),
    _demands(
        "kimi: a type may stand beside a choice",
        "openai_chat",
        'if "type" in schema and chosen:',
        "if False:",
        VENDORS,
    ),
    _demands(
        "anthropic, bedrock: a result may stand behind other content",
        "state",
        "            if self.mixed:",
        "            if False:",
        CHECK,
    ),
    _demands(
        "anthropic: a copy's call turn may lack its thinking",
        "anthropic",
        'if not self.thinks and self.dialect.reasoning.required == "with_calls":',
        "if False:",
        CHECK,
    ),
    _demands(
        "bedrock: two documents may have one name",
        "converse",
        "        elif name in self.titles:",
        "        elif False:",
        CHECK,
    ),
    _demands(
        "bedrock: a document in an earlier message needs no text",
        "converse",
        "        if self.documented:\n            self._documented()\n",
        "",
        CHECK,
    ),
    _demands(
        "bedrock: a text of an earlier message stands beside a document",
        "converse",
        "self.mixed = self.thinks = self.documented = self.worded = False",
        "self.mixed = self.thinks = self.documented = False",
        CHECK,
    ),
    _demands(
        "bedrock: an image before a result is no other content",
        "converse",
        '        self.mixed = True\n        self._carried("image"',
        '        self._carried("image"',
        CHECK,
    ),
    _demands(
        "bedrock: reasoning of an earlier message leads this one",
        "converse",
        "self.mixed = self.thinks = self.documented = self.worded = False",
        "self.mixed = self.documented = self.worded = False",
        CHECK,
    ),
    _demands(
        "bedrock: a source may hold nothing",
        "converse",
        "if len(source) != 1 or type(data) is not str or not data:",
        "if len(source) > 1 or type(data) is not str:",
        CHECK,
    ),
    _demands(
        "bedrock: results alone need no declared tool",
        "converse",
        "        self.called = True\n        result = _RESULT",
        "        result = _RESULT",
        CHECK,
    ),
    _demands(
        "responses: outputs may stand anywhere",
        "responses",
        "        if call_id in self.stale:\n            self.fault(",
        "        if False:\n            self.fault(",
        RESPONSES,
    ),
    _demands(
        "responses: reasoning may stand alone",
        "responses",
        "        if self.thinks is not None and not by_model:",
        "        if False:",
        RESPONSES,
    ),
    _demands(
        "responses: an item may have an id that its reasoning lacks",
        "responses",
        "        if identified and not self.thinks:",
        "        if False:",
        RESPONSES,
    ),
    _demands(
        "responses: a reference needs nothing that was stored",
        "responses",
        'if item["type"] == "item_reference" and not self.stores:',
        "if False:",
        RESPONSES,
    ),
    _demands(
        "gemini: results behind other parts are let through",
        "gemini",
        "        if self.mixed:\n",
        "        if False:\n",
        GEMINI,
    ),
    _demands(
        "gemini: a first call without a signature is let through",
        "gemini",
        'not signed and self.dialect.reasoning.required == "before_calls":',
        "False:",
        GEMINI,
    ),
    _demands(
        "an id may be used twice",
        "state",
        '        if call_id in self.due or (taken and self.dialect.ids.unique_scope == "transcript"):',
        "        if False:",
        CHECK,
    ),
    _demands(
        "a limit of no tokens is one",
        "state",
        "        if type(limit) is not int or limit < 1:",
        "        if type(limit) is not int:",
        CHECK,
    ),
    _demands(
        "a choice at the root of a tool's schema passes",
        "state",
        "found = [keyword for keyword in refused if",
        "found = [keyword for keyword in () if",
        CHECK,
    ),
    _demands(
        "open calls are forgotten between fragments",
        "state",
        "dict(self.due), dict(self.answered), {}, []",
        "{}, dict(self.answered), {}, []",
        FOLD,
    ),
    _demands(
        "a branch of a state changes its trunk",
        "state",
        "        made = object.__new__(type(self))\n",
        "        made = self\n",
        FOLD,
    ),
    _demands(
        "ids of earlier fragments are free again",
        "state",
        "            self.used = self.used.update(self.fresh)",
        "            pass",
        FOLD,
    ),
    _demands(
        "attachments of earlier fragments are forgotten",
        "state",
        "            setattr(made, name, value)\n",
        "            setattr(made, name, value)\n        made.media = made.documents = 0\n",
        CONVERSE,
    ),
    _demands(
        "names of documents in earlier fragments are forgotten",
        "state",
        "            setattr(made, name, value)\n",
        "            setattr(made, name, value)\n        vars(made).pop('titles', None)\n",
        CONVERSE,
    ),
    _demands(
        "faults keep the ids of the wire",
        "__init__",
        "[_renamed(fault, known, calls) if fault.call_ids else fault for fault in faults]",
        "list(faults)",
        ("tests/core/test_check_canonical.py",),
    ),
    Mutation(
        "the two readings are never compared",
        "tests/readings.py",
        '    if quick is not None and (whole is None or vars(quick) | {"strict": True} != vars(whole)):',
        "    if False:",
        ("tests/core/test_check_readings.py::test_readings_that_disagree_are_told",),
    ),
    _reads("a fault is no doubt", "__init__", "return None if read.faults else read", "return read"),
    _reads(
        "it is all there is of a request that opens an epoch again",
        "__init__",
        "if not whole and (quick := accepted",
        "if (quick := accepted",
    ),
    _reads("a long text may be blank", "__init__", "piece[1] not in _VISIBLE or ", ""),
    _reads("a long text may be of any length", "__init__", " or len(piece) > _TOO_LONG:", ":"),
    _reads("a long text ends in a word", "__init__", "piece[last:]", "b'\"'"),
    _reads("arguments may be any text", "state", "else _QUICK.decode(text)", "else {}"),
    _demands(
        "openai_chat: results are not taken out",
        "openai_chat",
        'self._result(value["tool_call_id"] if "tool_call_id" in value else None)',
        "pass",
        CHECK,
    ),
    _demands(
        "mistral: thinking needs no lead",
        "openai_chat",
        "            if sorted(thinks, reverse=True) != thinks:",
        "            if False:",
        VENDORS,
    ),
    _demands(
        "anthropic: thinking needs no signature",
        "anthropic",
        "if type(signature) is not str or not (signature",
        "if False and not (signature",
        CHECK,
    ),
    _demands(
        "anthropic: a failed result may be blank",
        "anthropic",
        "elif failed is True and not content.strip():",
        "elif False:",
        CHECK,
    ),
    _demands(
        "anthropic: a blank text is one like others",
        "anthropic",
        "if len(block) != 2 or self.ragged or not text or type(text) is not str:",
        "if len(block) != 2 or type(text) is not str:",
        CHECK,
    ),
    _demands(
        "responses: reasoning is sealed in any case",
        "responses",
        "if not (type(state) is str and state) and not self.stores:",
        "if False:",
        RESPONSES,
    ),
    _demands(
        "gemini: a signature is what it is",
        "gemini",
        '            self._signed(part["thoughtSignature"])\n',
        "            pass\n",
        GEMINI,
    ),
    _demands(
        "gemini: a part of two kinds is the first of them",
        "gemini",
        "        if len(held) != 1:\n",
        "        if not held:\n",
        GEMINI,
    ),
    _demands(
        "gemini: keys beyond those of a call pass",
        "state",
        "if type(value) is not dict or value.keys() - shape:",
        "if type(value) is not dict:",
        GEMINI,
    ),
    _demands(
        "bedrock: a result may have any status",
        "converse",
        'if result["status"] not in ("success", "error"):',
        "if False:",
        CHECK,
    ),
    _demands(
        "bedrock: a text may be blank",
        "converse",
        "elif not value or value.isspace():",
        "elif False:",
        CHECK,
    ),
    _demands(
        "bedrock: reasoning may be both plain and redacted",
        "converse",
        "if len(held) != 1 or type(data) is not str or not data:",
        "if not held or type(data) is not str or not data:",
        CHECK,
    ),
)
