"""Options of a tool: approval, effects, resources, timeout and description."""

from typing import Any

import pytest

from actors.core.data.jsonio import JsonValue
from actors.core.log.call_events import Effects, Started
from actors.core.log.events import LogEvent
from actors.errors import KernelError, ToolDefinitionError
from actors.testing import Call, Turn
from actors.tools import Tool, tool
from actors.tools.tool import Approval
from tests.runtime_support import log
from tests.scripted import scripted

SCHEMA: dict[str, JsonValue] = {"type": "object", "properties": {"path": {"type": "string"}}}


def write(path: str) -> str:
    """Write a file."""
    return path


async def later(arguments: dict[str, JsonValue]) -> Approval:
    """Decide asynchronously from the arguments."""
    return "allow"


def test_a_tool_is_by_default_allowed_not_repeatable_and_without_resources() -> None:
    made = tool(write)
    assert (made.approval, made.effects, made.resources, made.timeout) == ("allow", "once", (), None)
    assert not made.is_read_only
    assert not made.is_external


def test_an_approval_may_be_decided_from_the_arguments() -> None:
    def rule(arguments: dict[str, JsonValue]) -> Approval:
        return "deny" if arguments["path"] == "/etc" else "allow"

    made = tool(approval=rule)(write)
    assert made.approval_of({"path": "/tmp"}) == "allow"
    assert made.approval_of({"path": "/etc"}) == "deny"
    assert tool(approval="ask")(write).approval_of({"path": "/tmp"}) == "ask"


@pytest.mark.parametrize("said", [True, None, "yes", ["allow"]])
# Any: an invalid return value
def test_an_approval_rule_that_returns_an_unknown_value_denies_the_call(said: Any) -> None:
    assert tool(approval=lambda _: said)(write).approval_of({}) == "deny"


@pytest.mark.parametrize(
    ("resources", "keys"),
    [
        ("disk", ("disk",)),
        (("disk", "tape"), ("disk", "tape")),
        (lambda given: given["path"], ("/tmp",)),
        (lambda given: [given["path"], "disk"], ("/tmp", "disk")),
        (lambda given: (), ()),
    ],
)
def test_resources_are_named_or_derived_from_the_arguments(
    resources: Any, keys: tuple[str, ...]
) -> None:  # Any: each form of the option
    assert tool(resources=resources)(write).resource_keys({"path": "/tmp"}) == keys


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"approval": "maybe"}, "approval='maybe'; use 'allow', 'ask', 'deny' or a function"),
        ({"approval": ["ask"]}, "approval=['ask']; use"),
        ({"effects": "none"}, "effects='none'; use 'pure', 'idempotent' or 'once'"),
        ({"resources": 5}, "resources=5; use a name, a tuple of names or a function"),
        ({"resources": ("disk", 5)}, "resources=('disk', 5); use a name, a tuple of names or a function"),
        ({"approval": later}, "an async function as approval=; use a function that is not async"),
        ({"resources": later}, "an async function as resources=; use a function that is not async"),
        ({"effects": "pure", "resources": "disk"}, "resources and effects='pure'"),
    ],
)
def test_an_invalid_option_is_rejected_when_its_tool_is_defined(
    options: dict[str, Any], reason: str
) -> None:  # Any: invalid options
    with pytest.raises(ToolDefinitionError) as caught:
        tool(**options)(write)
    assert f"Tool 'write' has {reason}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("about", ["x" * (64 * 1024 + 1), None, 5])
# Any: a value from an untrusted server
def test_a_description_that_is_too_long_or_not_a_string_is_rejected(about: Any) -> None:
    with pytest.raises(ToolDefinitionError, match="needs a description of at most 65536 characters"):
        Tool.from_schema("write", about, SCHEMA, write)


@pytest.mark.parametrize(
    ("read_only", "options", "effects", "approval"),
    [
        (False, {}, "once", "ask"),
        (True, {}, "pure", "allow"),
        (False, {"effects": "pure"}, "pure", "allow"),
        (False, {"effects": "idempotent"}, "idempotent", "ask"),
        (False, {"approval": "allow"}, "once", "allow"),
        (True, {"approval": "ask"}, "pure", "ask"),
    ],
)
def test_an_external_tool_needs_approval_unless_it_only_reads(
    read_only: bool, options: Any, effects: str, approval: str
) -> None:  # Any: options of all kinds
    made = Tool.external("pay", "Pay a bill.", SCHEMA, read_only=read_only, **options)
    assert (made.is_external, made.effects, made.approval) == (True, effects, approval)
    assert made.is_read_only is (effects == "pure")
    assert not isinstance(made.bind({"path": 5}), type(made.bind({"path": "/"})))
    with pytest.raises(KernelError, match="has no function"):
        made(path="/")


@pytest.mark.anyio
@pytest.mark.parametrize("effects", ["pure", "idempotent", "once"])
async def test_the_effects_of_a_call_are_logged_before_it_starts(effects: Effects) -> None:
    """The effects at the start of a call decide whether it may run again, even if the tool changes later."""
    begun: list[LogEvent] = []

    @tool(effects=effects)
    async def work() -> str:
        """Work."""
        begun.extend(event for event in log(runtime, session) if isinstance(event, Started))
        return "done"

    async with scripted("openai_chat", Turn(Call("work", {})), tools=[work]) as (_, runtime, session):
        await session.ask("Go.")
        (known,) = (await session.ledger()).interactions()
    assert begun == [Started(known.call_id, effects)]
    assert known.effects == effects
