"""Create and check simulated encrypted content for OpenAI's reasoning items.

Theory of operation. The encrypted content contains the state that the item was bound to when it was created: the
account, the model, the item's id, and a digest of everything before the item. An HMAC protects this state. So the
server need not store anything: when a request returns the encrypted content, the server compares the state in it with
the request. A client may omit the id of the item, but must not change it. The state does not contain the summary, which
clients omit. The digest excludes reasoning, because clients may drop it. It excludes the ids, statuses and phases of
items as well, because a client that stores nothing on the server does not send them back.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from actors.strict.rules.base import Json, Mode, dump
from actors.strict.rules.responses_items import item_kind
from actors.strict.rules.responses_rules import RULES, ResponsesProfile, ResponsesSettings
from actors.strict.rules.responses_store import as_items


@dataclass(frozen=True, slots=True)
class _SealedItem:
    """The state to which encrypted reasoning is bound. `before` is a digest of the preceding content."""

    account: str
    model: str
    item: str
    before: str


def encrypt(request: Json, produced: Sequence[Json], item_id: str, settings: ResponsesSettings) -> str:
    """Return the encrypted content of a reasoning item.

    Args:
        request: The request that the response answers.
        produced: The items of the response before the reasoning item.
        item_id: The id of the reasoning item.
        settings: The settings of the host, with its account and secret.
    """
    seal = _sealed_item(request, [*as_items(request["input"]), *produced], item_id, settings)
    payload = dump(asdict(seal))
    return base64.b64encode(_hmac_of(payload, settings) + payload).decode()


def check(request: Json, mode: Mode, profile: ResponsesProfile, settings: ResponsesSettings) -> None:
    """Check the reasoning items of a request whose shape and sequence are valid.

    Raises:
        RuleBroken: At the first broken rule.
    """
    if settings.signatures == "trust":
        return
    items = request["input"]
    for at, item in enumerate(items):
        if item_kind(item) != "reasoning" or not item.get("encrypted_content"):
            continue
        then = _open_content(item["encrypted_content"], settings)
        named = item.get("id") or (then.item if then is not None else "")
        now = _sealed_item(request, items[:at], named, settings)
        if (
            why := _mismatch_reason(then, now, is_bound=profile.prefix_bound, is_strict=mode == "strict")
        ) is not None:
            raise RULES["OAR-09"].refuse("input", id=named, why=why)


def _mismatch_reason(
    sealed: _SealedItem | None, current: _SealedItem, *, is_bound: bool, is_strict: bool
) -> str | None:
    """Return the reason that the provider gives for refusing encrypted reasoning; None if the reasoning is valid."""
    if sealed is None:
        return "Encrypted content could not be decrypted or parsed."
    if sealed.account != current.account:
        return "Encrypted content organization_id did not match the target organization."
    if sealed.item != current.item:
        return "Encrypted content item_id did not match the target item id."
    if is_strict and sealed.model != current.model:
        return "Encrypted content model did not match the target model."
    if is_strict and is_bound and sealed.before != current.before:
        return "Encrypted content prefix did not match the target input."
    return None


def _sealed_item(
    request: Json, preceding_items: Sequence[Json], item_id: str, settings: ResponsesSettings
) -> _SealedItem:
    """Return the state that the encrypted content of a reasoning item must contain."""
    parameters = [request.get("instructions"), request.get("tools")]
    before_item = [_without_ids(item) for item in preceding_items if item_kind(item) != "reasoning"]
    return _SealedItem(settings.account, request["model"], item_id, _digest(dump([parameters, before_item])))


def _without_ids(item: Json) -> Json:
    """Return the parts of an item that a prefix digest covers."""
    which = item_kind(item)
    if which == "message":
        return [item["role"], _joined_text(item["content"])]
    return [which, *(item.get(key) for key in ("call_id", "name", "arguments", "input", "output"))]


def _joined_text(content: Json) -> Json:
    """Return a message's content as one string if it contains only text; otherwise return it unchanged."""
    if isinstance(content, str):
        return content
    texts = [part.get("text", part.get("refusal")) for part in content]
    return content if None in texts else "".join(texts)


def _open_content(content: str, settings: ResponsesSettings) -> _SealedItem | None:
    try:
        raw = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, payload = raw[:32], raw[32:]
    if not hmac.compare_digest(mac, _hmac_of(payload, settings)):
        return None
    return _SealedItem(**json.loads(payload))


def _hmac_of(payload: bytes, settings: ResponsesSettings) -> bytes:
    return hmac.new(settings.secret, payload, hashlib.sha256).digest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
