"""What is planted, as data: the least that makes a new one exist, and every place that must know of it.

A place is a file and the name in it. It tells if mypy finds an error inside that name, or if the test of
`tests/test_totality.py` that bears its name fails.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """`old` occurs once in `file`, and becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Plant:
    """A new one of a kind.

    Args:
        kind: What it is one of.
        edits: What makes it exist, and no more.
        places: The places that must know of it.
    """

    kind: str
    edits: tuple[Edit, ...]
    places: tuple[str, ...]


_CONTENT, _EVENTS, _FEED = "actors/core/content.py", "actors/core/events.py", "actors/core/feed.py"
_DIALECT, _PROFILES = "actors/core/dialect.py", "actors/core/profiles.py"

PLANTS = (
    Plant(
        "block",
        (
            Edit(
                _CONTENT,
                "Block: TypeAlias = ",
                'class Quote(Form, frozen=True, tag="q"):\n    json: Quoted\n\n\nBlock: TypeAlias = Quote | ',
            ),
        ),
        (
            "actors/core/door/attribute.py:SAID_BY",
            "actors/core/render/walk.py:_kept",
            "actors/core/render/walk.py:_write",
            "actors/cli/show.py:_words",
            "actors/testing/strategies.py:blocks",
            "actors/testing/histories.py:history",
            "actors/__init__.py:__all__",
            "docs/reference/api.md:Block",
        ),
    ),
    Plant(
        "event of the log",
        (
            Edit(
                _EVENTS,
                "\nEvent: TypeAlias = ",
                "\nclass Paused(Happening, frozen=True):\n    turn: int\n\n\nEvent: TypeAlias = Paused | ",
            ),
        ),
        (
            "actors/core/state.py:apply",
            "actors/core/events.py:__doc__",
            "actors/testing/strategies.py:events",
            "docs/reference/api.md:Event",
        ),
    ),
    Plant(
        "event of a tool call",
        (
            Edit(
                _EVENTS,
                "CallEvent: TypeAlias = ",
                "class Waited(Happening, frozen=True):\n    call_id: CallId\n\n\nCallEvent: TypeAlias = Waited | ",
            ),
        ),
        (
            "actors/core/ledger.py:_told",
            "actors/core/state.py:apply",
            "actors/core/events.py:__doc__",
            "actors/testing/strategies.py:events",
            "docs/reference/api.md:Event",
        ),
    ),
    Plant(
        "event of a stream",
        (
            Edit(
                _FEED,
                "SessionEvent: TypeAlias = ",
                "class PausedEvent(Struct, frozen=True):\n"
                '    type: ClassVar[Literal["paused"]] = "paused"\n    turn: int\n    seq: int\n\n\n'
                "SessionEvent: TypeAlias = PausedEvent | ",
            ),
        ),
        (
            "actors/core/event_json.py:_fields",
            "actors/cli/run.py:event",
            "actors/cli/show.py:event",
            "docs/reference/api.md:SessionEvent",
        ),
    ),
    Plant(
        "vendor",
        (
            Edit(
                _PROFILES,
                "OPENAI_COMPATIBLE = ",
                'ACME = replace(OPENAI_CHAT, name="acme")\nOPENAI_COMPATIBLE = ',
            ),
        ),
        (
            "actors/testing/histories.py:READERS",
            "actors/testing/rules/__init__.py:DIALECTS",
            "actors/config/providers.py:PROVIDERS",
            "actors/cli/options.py:DIALECTS",
            "actors/cli/world.py:STOPS",
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
                "actors/config/providers.py",
                'Literal[\n    "openai",',
                'Literal[\n    "acme",\n    "openai",',
            ),
        ),
        ("actors/config/providers.py:Kind", "tests/test_configured.py:SERVERS"),
    ),
    Plant(
        "strict host",
        (
            Edit(
                "actors/testing/rules/compatible.py",
                "HOSTS: dict[str, VendorHost] = {",
                'HOSTS: dict[str, VendorHost] = {"acme": OPENAI, ',
            ),
        ),
        ("actors/testing/rules/__init__.py:DIALECTS",),
    ),
    Plant(
        "family",
        (
            Edit(_DIALECT, 'Family: TypeAlias = Literal["', 'Family: TypeAlias = Literal["telex", "'),
            Edit(
                _DIALECT,
                "Dialect: TypeAlias = ",
                "class TelexDialect(Profile):\n"
                '    family: ClassVar[Literal["telex"]] = "telex"\n    turns: BlockTurns\n'
                "    media: PartMedia\n\n\nDialect: TypeAlias = TelexDialect | ",
            ),
        ),
        (
            "actors/core/profiles.py:PROFILES",
            "actors/core/check/__init__.py:_STATES",
            "actors/core/rulebook/__init__.py:PREFIXES",
            "actors/adapters/codec.py:codec",
            "actors/cli/bodies.py:whole",
            "tests/core/answers.py:told",
            "tests/scenarios/shape.py:READERS",
        ),
    ),
    Plant(
        "reason without a result",
        (Edit(_EVENTS, '"compacted", "denied", "lost"\n', '"compacted", "denied", "lost", "forgotten"\n'),),
        (
            "actors/core/render/choose.py:SYNTHETIC",
            "actors/testing/stock.py:REASONS",
            "docs/reference/errors.md:Reason",
        ),
    ),
    Plant(
        "reason of an epoch",
        (Edit(_EVENTS, 'EpochReason: TypeAlias = Literal["', 'EpochReason: TypeAlias = Literal["moved", "'),),
        ("docs/reference/errors.md:EpochReason",),
    ),
    Plant(
        "kind of failure",
        (
            Edit(
                "actors/adapters/failure.py",
                '    "circuit_open",\n]',
                '    "circuit_open",\n    "paused",\n]',
            ),
        ),
        (
            "actors/adapters/failure.py:ACTIONS",
            "actors/cli/exits.py:BY_KIND",
            "docs/reference/errors.md:Kind",
        ),
    ),
    Plant(
        "value that a family cannot write",
        (
            Edit(
                _PROFILES,
                "ChatMedia(max_count=500",
                'ChatMedia(user_kinds=frozenset({"document"}), max_count=500',
            ),
            Edit(_PROFILES, "ResponsesTurns(c", 'ResponsesTurns(alternation="merge_same", c'),
            Edit(
                _PROFILES,
                "AnthropicReasoning(\n",
                'AnthropicReasoning(required="before_calls",\n',
            ),
            Edit(
                _PROFILES,
                "GeminiMedia(max_count=3600",
                "GeminiMedia(max_count=3600, urls=True",
            ),
            Edit(
                _PROFILES,
                "ConverseReasoning(\n",
                'ConverseReasoning(carrier="reasoning_item",\n',
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
