"""The plants as data: the smallest edit that adds a new member of a kind, and every place that must handle it.

A place is a file and a name in it. A place reports the plant if mypy finds an error inside that name, or if the test of
`tests/project/test_totality.py` with its name fails.
"""

from dataclasses import dataclass

from tests.teeth.rewrite import Edit


@dataclass(frozen=True, slots=True)
class Plant:
    """A new member of a kind.

    Args:
        kind: The kind.
        edits: The edits that add it, and no more.
        places: The places that must handle it.
    """

    kind: str
    edits: tuple[Edit, ...]
    places: tuple[str, ...]


_CONTENT, _EVENTS, _CALL_EVENTS, _FEED = (
    "actors/core/values/content.py",
    "actors/core/log/events.py",
    "actors/core/log/call_events.py",
    "actors/core/stream_events/events.py",
)
_DIALECT, _PROFILES = "actors/core/dialects/dialect.py", "actors/core/dialects/profiles.py"

PLANTS = (
    Plant(
        "block",
        (
            Edit(
                f"{_CONTENT}:Block",
                "Block: TypeAlias = ...",
                """
                class Quote(Form, frozen=True, tag="q"):
                    json: Quoted


                Block: TypeAlias = Quote | ...
                """,
            ),
        ),
        (
            "actors/core/normalize/settle.py:BLOCK_AUTHORS",
            "actors/core/render/walk.py:_supported_blocks",
            "actors/core/render/walk.py:_write_blocks",
            "actors/cli/demo/show.py:_block_texts",
            "tests/generated/strategies.py:blocks",
            "tests/generated/histories.py:history",
            "actors/__init__.py:__all__",
            "docs/reference/api.md:Block",
        ),
    ),
    Plant(
        "event of the log",
        (
            Edit(
                f"{_EVENTS}:LogEvent",
                "LogEvent: TypeAlias = ...",
                """
                class Paused(EventBase, frozen=True):
                    turn: int


                LogEvent: TypeAlias = Paused | ...
                """,
            ),
        ),
        (
            "actors/core/session/state.py:apply",
            "actors/core/log/events.py:__doc__",
            "tests/core/test_exhaustive_events.py:log_group",
            "tests/generated/strategies.py:events",
            "docs/reference/api.md:Event",
        ),
    ),
    Plant(
        "event of a tool call",
        (
            Edit(
                f"{_CALL_EVENTS}:CallEvent",
                "CallEvent: TypeAlias = ...",
                """
                class Waited(EventBase, frozen=True):
                    call_id: CallId


                CallEvent: TypeAlias = Waited | ...
                """,
            ),
        ),
        (
            "actors/core/ledger.py:_apply_call_event",
            "actors/core/session/state.py:apply",
            "actors/core/log/events.py:__doc__",
            "tests/core/test_exhaustive_events.py:log_group",
            "tests/generated/strategies.py:events",
            "docs/reference/api.md:Event",
        ),
    ),
    Plant(
        "event of a stream",
        (
            Edit(
                f"{_FEED}:OwnEvent",
                "OwnEvent: TypeAlias = ...",
                """
                class PausedEvent(StreamEvent, frozen=True):
                    type: ClassVar[Literal["paused"]] = "paused"
                    turn: int


                OwnEvent: TypeAlias = PausedEvent | ...
                """,
            ),
        ),
        (
            "tests/core/test_exhaustive_events.py:group",
            "actors/events.py:__all__",
            "docs/reference/api.md:SessionEvent",
        ),
    ),
    Plant(
        "vendor",
        (
            Edit(
                f"{_PROFILES}:OPENAI_COMPATIBLE",
                "OPENAI_COMPATIBLE = ...",
                'ACME = replace(OPENAI_CHAT, name="acme")\nOPENAI_COMPATIBLE = ...',
            ),
        ),
        (
            "tests/generated/histories.py:READERS",
            "actors/strict/rules/__init__.py:DIALECTS",
            "actors/config/providers.py:PROVIDERS",
            "actors/cli/demo/script.py:STOPS",
            "tests/teeth/mutations/profiles.py:IDS",
            "tests/teeth/mutations/profiles.py:PLACES",
            "tests/scenarios/providers.py:IDS",
            "tests/scenarios/providers.py:NAMES",
            "docs/reference/dialects.md:##",
        ),
    ),
    Plant(
        "kind of backend",
        (
            Edit(
                "actors/config/providers.py:PROVIDERS",
                "{**...}",
                '{"acme": _define_provider("openai_compatible", "", "ACME"), **...}',
            ),
        ),
        ("tests/config/test_configured.py:SERVERS",),
    ),
    Plant(
        "strict host",
        (
            Edit(
                "actors/strict/rules/__init__.py:HOSTS",
                "HOSTS: dict[str, VendorHost] = {**...}",
                'HOSTS: dict[str, VendorHost] = {"acme": OPENAI, **...}',
            ),
        ),
        ("actors/strict/rules/__init__.py:DIALECTS",),
    ),
    Plant(
        "family",
        (
            Edit("actors/core/models/rules.py:Family", "Literal[*...]", 'Literal["telex", *...]'),
            Edit(
                f"{_DIALECT}:Dialect",
                "Dialect: TypeAlias = ...",
                """
                class TelexDialect(Profile):
                    family: ClassVar[Literal["telex"]] = "telex"
                    turns: BlockTurns
                    media: PartMedia


                Dialect: TypeAlias = TelexDialect | ...
                """,
            ),
        ),
        (
            "actors/core/dialects/profiles.py:PROFILES",
            "actors/core/check/__init__.py:_STATES",
            "actors/core/rulebook/__init__.py:PREFIXES",
            "actors/adapters/codec.py:codec",
            "actors/cli/lint.py:_request_body",
            "tests/core/answers.py:parse_results",
            "tests/scenarios/shape.py:READERS",
        ),
    ),
    Plant(
        "reason without a result",
        (Edit(f"{_CALL_EVENTS}:Reason", "Literal[*...]", 'Literal["forgotten", *...]'),),
        (
            "actors/core/render/choose.py:SYNTHETIC",
            "tests/generated/parts.py:REASONS",
            "docs/reference/errors.md:Reason",
        ),
    ),
    Plant(
        "reason of an epoch",
        (Edit(f"{_EVENTS}:EpochReason", "Literal[*...]", 'Literal["moved", *...]'),),
        ("docs/reference/errors.md:EpochReason",),
    ),
    Plant(
        "kind of failure",
        (
            Edit(
                "actors/adapters/failure.py:Kind",
                "Literal[*...]",
                'Literal["paused", *...]',
            ),
        ),
        (
            "actors/adapters/failure.py:ACTIONS",
            "actors/cli/exits.py:EXIT_BY_KIND",
            "docs/reference/errors.md:Kind",
        ),
    ),
    Plant(
        "value that a family cannot write",
        (
            Edit(
                f"{_PROFILES}:OPENAI_CHAT",
                "ChatMedia(**...)",
                'ChatMedia(user_kinds=frozenset({"document"}), **...)',
            ),
            Edit(
                f"{_PROFILES}:OPENAI_RESPONSES",
                "ResponsesTurns(**...)",
                'ResponsesTurns(alternation="merge_same", **...)',
            ),
            Edit(
                f"{_PROFILES}:ANTHROPIC",
                "AnthropicReasoning(**...)",
                'AnthropicReasoning(required="before_calls", **...)',
            ),
            Edit(f"{_PROFILES}:GEMINI", "GeminiMedia(**...)", "GeminiMedia(urls=True, **...)"),
            Edit(
                f"{_PROFILES}:BEDROCK",
                "ConverseReasoning(**...)",
                'ConverseReasoning(carrier="reasoning_item", **...)',
            ),
        ),
        (
            f"{_PROFILES}:OPENAI_CHAT",
            f"{_PROFILES}:OPENAI_RESPONSES",
            f"{_PROFILES}:ANTHROPIC",
            f"{_PROFILES}:GEMINI",
            f"{_PROFILES}:BEDROCK",
        ),
    ),
)
