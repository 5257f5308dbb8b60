"""Check the items of an OpenAI Responses request: their shapes, ids and names, and their sequence.

Theory of operation. The items are checked in several passes, so the reported fault is the first in the provider's order
of checks, not the first in the array. Outputs are paired with calls by `call_id`. An output may follow its call at any
distance, but no call may be open at the end. Strict compatible hosts require the outputs directly after a series of
calls. A separate pass checks this (`_check_call_groups`).

Some items are valid only together with the reasoning before them. This needs no storage, because the server's item ids
contain the id of the preceding reasoning: `fc_r<x>_<n>` was created after reasoning `rs_<x>`. Reasoning and the item
after it must both have an id, or both have none, with one exception: a call without an id may follow the reasoning that
directly preceded it in the host's answer. An item that consists only of an id is a reference. References are replaced
by stored items (`responses_store`) after the checks of shapes and before the checks of the sequence.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest

from actors.strict.rules.base import Json, Mode, is_object
from actors.strict.rules.reading import key_of_check, parse, unchecked_items
from actors.strict.rules.responses_shapes import (
    ANSWER_PARTS,
    CALLS,
    INPUT_PARTS,
    ITEMS,
    OUTPUTS,
    RULES,
    SEARCH_OUTPUTS,
    UNORDERED_ITEMS,
    ItemShape,
    ResponsesProfile,
)
from actors.strict.rules.shapes import ArrayOf, Check, Fields, Maybe, OpenAIShapeChecker, Shape, Tagged

_PREFIXES = {"message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}
_ROLES = ("user", "assistant", "system", "developer")
_CREATED_AFTER_REASONING = re.compile(r"[a-z]+_r([0-9a-f]+)_\d+")
_NAME = r"^[a-zA-Z0-9_-]+$"
_MAX_NAME = 128
_MAX_STRING = 10_485_760
_ANSWERS_BY_ID = ("local_shell_call_output",)  # this output may have the same id as its call
_WORDS = ("input_text", "output_text", "refusal")
_SHAPE = key_of_check("OAR shape")
WALK = OpenAIShapeChecker(RULES["OAR-10"], RULES["OAR-S02"], RULES["OAR-S03"], RULES["OAR-S04"])


def check(request: Json, profile: ResponsesProfile) -> None:
    """Check the shapes of the items in a request's input: their types, keys and names.

    Raises:
        RuleBroken: At the first broken rule.
    """
    items = request["input"]
    if isinstance(items, str):
        return
    WALK.require_described_type(items, list, "input", "one of a string or array of objects")
    if not items and not may_omit_input(request):
        raise RULES["OAR-S06"].refuse("input", path="input", what="array")
    for at, item in unchecked_items(items, _SHAPE):
        _check_shape(item, f"input[{at}]")
    for at, item in unchecked_items(items, key_of_check("OAR names", profile)):
        _check_names(item, f"input[{at}]", profile)


def may_omit_input(request: Json) -> bool:
    """Return True if a request has a prompt template, a previous response or a conversation, and so needs no input."""
    return any(request.get(key) is not None for key in ("prompt", "previous_response_id", "conversation"))


def check_sequence(
    items: list[Json],
    mode: Mode,
    profile: ResponsesProfile,
    are_consecutive: Callable[[Json, Json], bool],
    *,
    allows_unknown_calls: bool = False,
) -> None:
    """Check the item ids, pairing and order of a complete conversation whose shapes are valid.

    Args:
        items: The items of the conversation.
        mode: The mode of the server.
        profile: The profile of the model.
        are_consecutive: Returns True if an answer of the host contained a call directly after a reasoning item, so that
            the call needs no id.
        allows_unknown_calls: Whether some references could not be resolved, so that an output may answer a call that is
            not in `items`.

    Raises:
        RuleBroken: At the first broken rule.
    """
    _check_item_ids(items, profile)
    _check_pairs(items, allows_unknown_calls=allows_unknown_calls)
    _check_reasoning(items, are_consecutive)
    if mode == "strict":
        _check_strictly(items)
    if mode == "strict" or profile.adjacent:
        _check_call_groups(items, allows_unknown_calls=allows_unknown_calls)


def item_kind(item: Json) -> str:
    """Return the type of an item. Without a type, an item is a message or, if it has an id but no role, a reference."""
    which: str | None = item.get("type")
    return which or ("message" if "role" in item or "id" not in item else "item_reference")


# --- shapes


def _check_shape(item: Json, path: str) -> None:
    WALK.require_type(item, dict, path)
    if item.get("type") is None and "role" not in item and "id" not in item:
        raise WALK.missing_key_refusal(path, "type")
    which: Json = item_kind(item)
    if not isinstance(which, str) or which not in ITEMS:
        raise WALK.unlisted_value_refusal(f"{path}.type", which, tuple(ITEMS))
    WALK.check(item, _SHAPES[which], path)


def _check_message(item: Json, path: str, context: object) -> None:
    role, content = item["role"], f"{path}.content"
    if role not in _ROLES:
        raise WALK.unlisted_value_refusal(f"{path}.role", role, _ROLES)
    if item.get("phase") not in (None, "commentary", "final_answer"):
        raise RULES["OAR-S04"].refuse(
            f"{path}.phase", value=item["phase"], values="'commentary' and 'final_answer'"
        )
    said = WALK.require(item, "content", path)
    if role != "assistant":
        _check_content(said, _INPUT, content)
    elif said != []:  # if an answer consists only of reasoning, its message has no parts
        _check_content(said, _SAID, content)


def _check_output(item: Json, path: str, context: object) -> None:
    _check_content(WALK.require(item, "output", path), _INPUT, f"{path}.output")


def _check_content(content: Json, part: Tagged, path: str) -> None:
    if isinstance(content, str):
        if len(content) > _MAX_STRING:
            raise RULES["OAR-S07"].refuse(path, path=path, limit=_MAX_STRING, length=len(content))
        return
    if not WALK.require_described_type(content, list, path, "one of a string or array of objects"):
        raise RULES["OAR-S06"].refuse(path, path=path, what="array")
    WALK.check(content, ArrayOf(part), path)


def _check_part(part: Json, path: str, context: object) -> None:
    which = part["type"]
    keys = _VALUES.get(which, ("text",))
    held = next((key for key in keys if part.get(key) is not None), None)
    if held is None:
        raise WALK.missing_key_refusal(path, keys[0])
    WALK.required_member(part, held, str, path)
    if which in _WORDS:
        return
    if held == "file_data" and not part.get("filename"):
        raise WALK.missing_key_refusal(path, "filename")
    if not part[held]:
        raise RULES["OAR-S06"].refuse(f"{path}.{held}", path=f"{path}.{held}", what="string")


def _check_reasoning_id(item: Json, path: str, context: object) -> None:
    """Refuse reasoning that has neither an id nor encrypted content."""
    if not item.get("encrypted_content"):
        WALK.require(item, "id", path)


def _parts_shape(keys: Mapping[str, frozenset[str]]) -> Tagged:
    """Return the shape of a content part. `keys` contains the allowed keys by type of part."""
    shapes = {
        which: Fields(dict.fromkeys(sorted(names), _ANY), check=_check_part) for which, names in keys.items()
    }
    return Tagged("type", shapes, tuple(keys), reports_wrong_type=False)


def _item_fields(item_type: str, shape: ItemShape) -> Fields:
    """Return the shape of a type of item. Nested values are checked after the keys."""
    special: dict[str, Shape | Maybe] = {}
    if item_type == "reasoning":
        text = Fields({"type": _ANY, "text": str})
        special = {
            "summary": ArrayOf(text),
            "encrypted_content": Maybe(str, null=True),
            "id": Maybe(str, null=True),
        }
    elif item_type not in _CHECKS and "id" not in shape.required:
        special = {"id": Maybe(str, null=True)}
    others = dict.fromkeys(sorted(shape.keys - shape.required.keys()), _ANY)
    precheck = _check_reasoning_id if item_type == "reasoning" else None
    return Fields({**shape.required, **others, **special}, precheck=precheck, check=_CHECKS.get(item_type))


_ANY = Maybe(object)
_VALUES = {
    "input_image": ("image_url", "file_id"),
    "input_file": ("file_url", "file_data", "file_id"),
    "refusal": ("refusal",),
}
"""The keys that may contain a part's value, by the part's type; the first key that is present counts. All other parts
have the key `text`.
"""
_CHECKS: Mapping[str, Check] = {
    "message": _check_message,
    "function_call_output": _check_output,
    "custom_tool_call_output": _check_output,
}
_INPUT, _SAID = (
    _parts_shape(INPUT_PARTS),
    _parts_shape({**ANSWER_PARTS, "input_text": INPUT_PARTS["input_text"]}),
)
_SHAPES = {which: _item_fields(which, shape) for which, shape in ITEMS.items()}


# --- ids and names


def _check_names(item: dict[str, Json], path: str, profile: ResponsesProfile) -> None:
    """Check the `call_id` and the tool name of an item."""
    call_id = item.get("call_id")
    if call_id is not None:
        if not call_id:
            raise RULES["OAR-S06"].refuse(f"{path}.call_id", path=f"{path}.call_id", what="string")
        if len(call_id) > profile.call_id_length:
            raise RULES["OAR-08"].refuse(
                f"{path}.call_id", path=f"{path}.call_id", limit=profile.call_id_length, length=len(call_id)
            )
    if item_kind(item) not in CALLS:
        return
    name, path = item["name"], f"{path}.name"
    if len(name) > _MAX_NAME:
        raise RULES["OAR-S07"].refuse(path, path=path, limit=_MAX_NAME, length=len(name))
    if not re.fullmatch(_NAME[1:-1], name):
        raise RULES["OAR-S05"].refuse(path, path=path, pattern=_NAME)


def _check_item_ids(items: list[Json], profile: ResponsesProfile) -> None:
    """Check that item ids are unique, have their type's prefix, and are preceded by the reasoning that they require."""
    seen: set[str] = set()
    for at, (which, named) in _item_ids(items):
        prefix = _PREFIXES.get(which, "")
        if not named.startswith(prefix):
            raise RULES["OAR-06"].refuse(f"input[{at}].id", path=f"input[{at}].id", id=named, prefix=prefix)
        if profile.looks_up_items and which in _PREFIXES and _is_from_model(items[at]):
            raise RULES["OAR-05"].refuse("input", id=named)
        if which in _ANSWERS_BY_ID:
            continue
        if named in seen:
            raise RULES["OAR-07"].refuse("input", id=named)
        behind = _CREATED_AFTER_REASONING.fullmatch(named)
        if which in _PREFIXES and behind and f"rs_{behind[1]}" not in seen:
            raise RULES["OAR-04"].refuse("input", id=named, kind=which, wanted=f"rs_{behind[1]}")
        seen.add(named)


def _item_ids(items: list[Json]) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield (index, (type, id)) for each item that has an id."""
    for at, item in enumerate(items):
        named = item.get("id")
        if named is None:
            continue
        WALK.require_type(named, str, f"input[{at}].id")
        yield at, (item_kind(item), named)


# --- the sequence


def _check_pairs(items: list[Json], *, allows_unknown_calls: bool) -> None:
    """Check that each output answers a call, and that each call has an output."""
    waiting: list[tuple[str, str]] = []
    in_container: list[tuple[str, str]] = []
    for item in items:
        which = item_kind(item)
        if f"{which}_output" in OUTPUTS:
            (in_container if _runs_in_container(item) else waiting).append((which, item["call_id"]))
        if which not in OUTPUTS:
            continue
        answered = _call_of_output(item, items)
        if answered in waiting:
            waiting.remove(answered)
        elif answered not in in_container and not allows_unknown_calls:
            raise RULES["OAR-02"].refuse("input", kind=OUTPUTS[which], id=answered[1])
    for which, call_id in waiting:
        if which == "custom_tool_call":
            raise RULES["OAR-11"].refuse("input", id=call_id)
        raise RULES["OAR-01"].refuse("input", kind=OUTPUTS[f"{which}_output"], id=call_id)


def _runs_in_container(call: Json) -> bool:
    """Return True for a command that the provider itself runs in a container. The client then sends no output."""
    environment = call.get("environment")
    return is_object(environment) and environment.get("type") == "container_reference"


def _call_of_output(item: Json, items: list[Json]) -> tuple[str, str]:
    """Return the type and the `call_id` of the call that an output answers.

    The output contains the call's `call_id` or its item id.
    """
    which = item_kind(item).removesuffix("_output")
    if item.get("call_id") is not None or "id" not in item:
        return which, str(item.get("call_id"))
    named = (call["call_id"] for call in items if item_kind(call) == which and call.get("id") == item["id"])
    return which, next(named, str(item["id"]))


def _check_reasoning(items: list[Json], are_consecutive: Callable[[Json, Json], bool]) -> None:
    """Check that each reasoning item is followed by an item from the model. Either both items must have ids, or
    neither.
    """
    said = [item for item in items if item_kind(item) not in UNORDERED_ITEMS]
    for item, behind in zip_longest(said, said[1:]):
        if item_kind(item) != "reasoning":
            continue
        named = item.get("id")
        if behind is None or not _is_from_model(behind):
            raise RULES["OAR-03"].refuse("input", id=named)
        if named and not behind.get("id") and not are_consecutive(item, behind):
            raise RULES["OAR-03"].refuse("input", id=named)
        if behind.get("id") and not named:
            kind_ = item_kind(behind)
            raise RULES["OAR-04"].refuse("input", id=behind["id"], kind=kind_, wanted=None)


def _is_from_model(item: Json) -> bool:
    """Return True for an item that the model or a provider-run tool created."""
    which = item_kind(item)
    if which == "message":
        return bool(item["role"] == "assistant")
    if which in SEARCH_OUTPUTS:
        return bool(item.get("execution") != "client")
    return which not in OUTPUTS and which not in UNORDERED_ITEMS


def _check_call_groups(items: list[Json], *, allows_unknown_calls: bool) -> None:
    """Refuse messages between calls and their outputs. Items of provider-run tools are allowed there."""
    run: list[str] = []
    closing = False
    for item in items:
        which = item_kind(item)
        if which in CALLS:
            if run and closing:
                raise RULES["OAR-14"].refuse("input", id=run[0])
            run.append(item["call_id"])
        elif which.removesuffix("_output") in CALLS:
            if item["call_id"] in run:
                run.remove(item["call_id"])
            elif not allows_unknown_calls:
                raise RULES["OAR-14"].refuse("input", id=item["call_id"])
            closing = bool(run)
        elif run and (which == "message" or (closing and which == "reasoning")):
            raise RULES["OAR-14"].refuse("input", id=run[0])


def _check_strictly(items: list[Json]) -> None:
    """Apply the additional rules of strict compatible hosts."""
    seen: set[str] = set()
    for at, item in enumerate(items):
        which = item_kind(item)
        if which == "function_call" and not _is_json_object(item["arguments"]):
            raise RULES["OAR-S20"].refuse(f"input[{at}].arguments")
        if which in CALLS and item["call_id"] in seen:
            raise RULES["OAR-S21"].refuse(f"input[{at}].call_id", id=item["call_id"])
        if which in CALLS:
            seen.add(item["call_id"])
    if items and _is_from_model(items[-1]) and item_kind(items[-1]) == "message":
        raise RULES["OAR-S22"].refuse("input")


def _is_json_object(arguments: str) -> bool:
    try:
        return is_object(parse(arguments.encode()))
    except ValueError:
        return False
