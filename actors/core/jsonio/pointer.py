"""What a local reference of a JSON Schema names: a JSON pointer (RFC 6901) behind a `#`, percent-encoded."""

from urllib.parse import unquote

from actors.core.jsonio.text import JsonValue


def pointed(root: JsonValue, reference: str) -> JsonValue:
    """Return what `reference`, such as `#` or `#/$defs/A`, names inside `root`; None if there is no such thing.

    What is no pointer (`#anchor`, an address) names nothing here.
    """
    pointer = unquote(reference.removeprefix("#"))
    if not reference.startswith("#") or pointer[:1] not in ("", "/"):
        return None
    found = root
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if type(found) is dict:
            found = found.get(key)
        elif type(found) is list:
            found = found[int(key)] if key.isdecimal() and int(key) < len(found) else None
        else:
            return None
    return found
