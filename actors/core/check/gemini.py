"""What Google's generateContent demands, part by part.

Pairing is by position too: what a model content calls, the user content after it answers first, in call order,
under the calls' names. Ids, where there are any, only repeat that. Keys are taken in both of their spellings,
`functionCall` and `function_call`, and words of an enumeration in capitals or not, as ProtoJSON does.
"""

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

from actors.core.check.gemini_parameters import GeminiParameters
from actors.core.check.words import excerpt, kind_of
from actors.core.jsonio import JsonValue

_FLAGS = frozenset({"thought", "thoughtSignature", "partMetadata", "mediaResolution", "videoMetadata"})
_CALL = frozenset({"name", "args", "id"})
_RESPONSE = frozenset({"name", "response", "id", "parts"})
_BLOB = frozenset({"mimeType", "data", "displayName"})
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


class Gemini(GeminiParameters):
    """The judge of the family `gemini`.

    An open call is known by its number in the transcript, as `#3`, and `answered` holds such numbers.

    Attributes:
        calls: Calls so far.
        unasked: No user content stands before the current model content.
    """

    opens: ClassVar[str | None] = "parts"
    model: ClassVar[str] = "model"
    keys: ClassVar[frozenset[str]] = frozenset({"role", "parts"})

    calls = 0
    unasked = False

    # --- contents -----------------------------------------------------------------------------------

    def begin(self, role: str) -> None:
        if self.due and (role == "model" or self.role == "user"):
            self.unanswered("in the next content")
        self.unasked = role == "model" and self.role != "user"
        self.answered.clear()
        self.mixed = False

    def unanswered(self, when: str) -> None:
        ids = tuple(call_id or number for number, (call_id, _) in self.due.items())
        self.fault("GEM-01", self.here, f"no functionResponse for {len(ids)} functionCall parts {when}", *ids)
        self.due.clear()

    # --- parts --------------------------------------------------------------------------------------

    def block(self, block: JsonValue) -> None:
        part = block if type(block) is dict and block.keys() <= _PART else self.fields(block, _PART)
        if part is None:
            return None
        held = _PARTS.keys() & part
        if "thoughtSignature" in part:
            self._signed(part["thoughtSignature"])
        if "thought" in part:
            self.fault("ALL-08", self.at, "thoughts are not sent back")
        if len(held) != 1:
            return self.fault("ALL-11", self.at, f"a part holds one kind of data, not {len(held)}")
        (kind,) = held
        return _PARTS[kind](self, part)

    def _signed(self, signature: JsonValue) -> None:
        """A part has this signature."""
        if self.role != "model":
            self.fault("ALL-08", self.at, "a thoughtSignature outside a model content")
        if self.dialect.reasoning.carrier == "none":
            self.fault("ALL-08", self.at, "this dialect carries no thoughtSignature")
        stem = signature.rstrip("=") if type(signature) is str else ""
        if type(signature) is not str or not _BASE64.fullmatch(signature) or len(stem) % 4 == 1:
            self.fault("GEM-06", self.at, f"thoughtSignature {excerpt(signature)} is not base64")

    def _text(self, part: dict[str, JsonValue]) -> None:
        self.mixed = True
        if type(text := part["text"]) is not str:
            self.wanted("text is a string", self.at, text)
        if text == "" and "thoughtSignature" not in part:
            self.fault("GEM-11", self.at, "the text is empty")

    def _call(self, part: dict[str, JsonValue]) -> None:
        call = self.fields(part["functionCall"], _CALL)
        if call is None:
            return None
        if self.role != "model":
            return self.fault("ALL-08", self.at, "a functionCall outside a model content")
        if type(given := call["args"] if "args" in call else None) is not dict:
            self.fault("ALL-06", f"{self.at}.args", f"arguments are an object, not {kind_of(given)}")
        call_id, name = self._id(call), call["name"] if "name" in call else None
        self.mixed = True
        if not self.due and self.unasked:
            self.fault("GEM-02", self.at, "a function call turn that does not come after a user content")
        signed = "thoughtSignature" in part and part["thoughtSignature"]
        if not self.due and not signed and self.dialect.reasoning.required == "before_calls":
            self.fault("GEM-04", self.at, "the first functionCall has no thoughtSignature")
        if type(name) is not str or not self.is_name(name):
            self.named(name, self.at)
        if call_id and self.take(call_id):
            self.fault("ALL-04", f"{self.at}.id", f"id {excerpt(call_id)} is taken", call_id)
        self.due[f"#{self.calls}"] = (call_id, name)
        self.calls += 1
        return None

    def _response(self, part: dict[str, JsonValue]) -> None:
        response = self.fields(part["functionResponse"], _RESPONSE)
        if response is None:
            return None
        if self.role != "user":
            return self.fault("ALL-08", self.at, "a functionResponse outside a user content")
        if type(said := response["response"] if "response" in response else None) is not dict:
            self.wanted("a response is an object", f"{self.at}.response", said)
        if "parts" in response:
            self._attached(response["parts"])
        call_id, name = self._id(response), response["name"] if "name" in response else None
        if type(name) is not str or not self.is_name(name):
            self.named(name, self.at)
        return self._answers(call_id, name)

    def _answers(self, call_id: str, name: JsonValue) -> None:
        """Judge a result by the next call that waits."""
        ids = (call_id,) if call_id else ()
        if not self.due:
            if self.answered:
                return self.fault("GEM-01", self.at, "more functionResponses than functionCalls", *ids)
            return self.fault("GEM-03", self.at, "a functionResponse without a function call turn", *ids)
        number, (wanted_id, wanted_name) = next(iter(self.due.items()))
        if self.mixed:
            self.fault("GEM-03", self.at, "a functionResponse behind other parts", call_id or number)
        if (name, call_id) != (wanted_name, wanted_id):
            what = f"the response of {excerpt(name)} {excerpt(call_id)} where {excerpt(wanted_name)} is due"
            self.fault("GEM-16", self.at, what, call_id or number)
        del self.due[number]
        return self.answered.add(number)

    def _id(self, value: dict[str, JsonValue]) -> str:
        """Return the id of a call or of its result, judged; empty if there is none."""
        if "id" not in value:
            return ""
        call_id = value["id"]
        if not self.dialect.ids.native_passthrough:
            self.fault("GEM-09", ".id", "this host refuses ids")
        else:
            self.identified(call_id, ".id")
        return call_id if type(call_id) is str else ""

    def _attached(self, parts: JsonValue) -> None:
        """Judge the media of a response."""
        where = f"{self.at}.parts"
        if type(parts) is not list or not parts:
            return self.wanted("parts are a list with content", where, parts)
        for part in parts:
            blob = self.spelt(part)
            if type(blob) is not dict or blob.keys() != {"inlineData"}:
                self.fault("ALL-07", where, "a part of a response has inlineData and no other key")
            elif (kind := self._blob(blob["inlineData"])) not in (None, *self.dialect.media.result_kinds):
                self.fault("ALL-10", where, f"{kind} is not accepted in a response")
        return None

    def _inline(self, part: dict[str, JsonValue]) -> None:
        self.mixed = True
        self._blob(part["inlineData"])

    def _blob(self, value: JsonValue) -> str | None:
        """Judge data, and return of which kind they are."""
        blob = self.fields(value, _BLOB)
        if blob is None:
            return None
        mime, data = blob.get("mimeType"), blob.get("data")
        if type(data) is not str or not data:
            self.fault("ALL-02", self.at, "data is a base64 string with content")
        if self.role != "user" or type(mime) is not str or mime not in self.dialect.media.types:
            self.fault("ALL-10", self.at, f"media of type {excerpt(mime)} are not accepted here")
        kind = "image" if str(mime).startswith("image/") else "document"
        self.attach(kind, self.at)
        return kind

    def _file(self, part: dict[str, JsonValue]) -> None:
        self.mixed = True
        if self.role != "user" or not self.dialect.media.urls:
            self.fault("ALL-10", self.at, "fileData is not accepted here")

    def _own(self, part: dict[str, JsonValue]) -> None:
        """Read a part of the provider's own tools."""
        self.mixed = True
        if self.role != "model":
            self.fault("ALL-08", self.at, "a part of the provider's own tools outside a model content")


_PARTS: Mapping[str, Callable[[Gemini, dict[str, JsonValue]], None]] = {
    "text": Gemini._text,
    "functionCall": Gemini._call,
    "functionResponse": Gemini._response,
    "inlineData": Gemini._inline,
    "fileData": Gemini._file,
    "executableCode": Gemini._own,
    "codeExecutionResult": Gemini._own,
    "toolCall": Gemini._own,
    "toolResponse": Gemini._own,
}
_PART = _FLAGS | _PARTS.keys()
