"""The two spellings of a key in ProtoJSON: `functionCall`, and `function_call` as the schema has it."""

import re

from actors.core.jsonio import JsonValue

_UNDERSCORE = re.compile(r"_([a-z0-9])")


def spelt(value: JsonValue) -> JsonValue:
    """Return an object with its keys in the first spelling; anything else as it is.

    A key that is there in both stays in both, and is unknown in the second: the host refuses it too.
    """
    if type(value) is not dict or "_" not in "".join(value):
        return value
    first = {key: _UNDERSCORE.sub(lambda found: found[1].upper(), key) for key in value}
    return {
        key if first[key] != key and first[key] in value else first[key]: item for key, item in value.items()
    }
