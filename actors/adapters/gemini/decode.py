"""Google's generateContent: an answer's bytes in, canonical events and a message out.

Every event of a stream is a whole response with the parts that are new, so a whole body reads as a stream of
one event. The end marker is a finish reason; there is no `[DONE]`. Calls come whole: Vertex sends them in pieces only
to requests that ask for that, and a piece must never be run as a call.

Parts keep their order and their borders, because a thought signature belongs to one part: text is joined with the
text before it only where neither is signed. A signature becomes a thinking block directly before what its part
becomes; that of a blank text, as streams end on, one with the blank text in it. Parts marked as thought are summaries
for people: shown, and never sent back, with their signatures.
"""

from typing import Literal

from actors.adapters.arriving import Words
from actors.adapters.assembly import Assembly
from actors.adapters.base import AnswerReader
from actors.adapters.failure import ACTIONS, AnswerFault, Failure, broken
from actors.adapters.gemini.encode import BLANK
from actors.adapters.wire import Fields, fields, items, json_text, number, string
from actors.core.dialect import Dialect
from actors.core.stream import Usage

_KEPT = frozenset({"text", "functionCall"})
_FLAGS = frozenset({"thought", "thoughtSignature"})
_OWN = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_BESIDE = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
_IN_PIECES = "a call came in pieces (partialArgs), which was not asked for"


class GenerateContentReader(AnswerReader):
    """Reads responses, whole or in pieces."""

    def __init__(self, assembly: Assembly, dialect: Dialect) -> None:
        super().__init__(assembly, dialect)
        self._open: Words | None = None  # what the next unsigned text of its kind continues
        self._figures: dict[str, int] = {}

    def event(self, name: str, payload: Fields) -> None:
        self._take(payload)

    def body(self, body: Fields) -> None:
        self._take(body)
        if not self.ended:
            raise broken("the body holds no finished candidate")

    def _take(self, response: Fields) -> None:
        if response.get("error"):
            self.report(response)
        self._usage(fields(response.get("usageMetadata")))
        candidate = _first_candidate(response)
        if blocked := string(fields(response.get("promptFeedback")).get("blockReason")):
            message = f"the prompt was blocked: {blocked!r}"
            raise AnswerFault(Failure("refusal", ACTIONS["refusal"], message, code=blocked))
        for part in items(fields(candidate.get("content")).get("parts")):
            self._part(fields(part))
        for name in _BESIDE:
            self.assembly.mark(name, candidate.get(name), more=False)
        self.assembly.leave_out_once("logprobsResult", candidate.get("logprobsResult"))
        if reason := string(candidate.get("finishReason")):
            self._finish(reason)

    def _part(self, part: Fields) -> None:
        signature = string(part.get("thoughtSignature"))
        if _KEPT.isdisjoint(part) and not part.keys() <= _FLAGS:
            self._own(part)
        elif part.get("thought") is True:
            self._words("thinking", string(part.get("text")))
        elif isinstance(call := part.get("functionCall"), dict):
            self._call(call, signature)
        elif signature and isinstance(text := part.get("text", ""), str):
            self._signed_text(text, signature)
        else:
            self._words("text", string(part.get("text")))

    def _own(self, part: Fields) -> None:
        """Take a part that is Google's own, its signature in it. That of an image is worth nothing without the part."""
        name = next(name for name in part if name not in _FLAGS)
        self._open = None
        image = fields(part[name]) if name == "inlineData" else {}
        if data := string(image.get("data")):
            self.assembly.media(string(image.get("mimeType")) or "application/octet-stream", data)
            self.assembly.leave_out_once("thoughtSignature", part.get("thoughtSignature"))
        else:
            goes_back = name in _OWN and part.keys() - _FLAGS == {name} and part.get("thought") is not True
            self.assembly.native(name, dict(part), goes_back=goes_back).done = True

    def _words(self, kind: Literal["text", "thinking"], text: str) -> None:
        if not text:
            return
        if self._open is None or self._open.kind != kind:
            self._open = self.assembly.words(kind)
        self.assembly.say(self._open, text)

    def _signed_text(self, text: str, signature: str) -> None:
        blank = not text.strip()
        self._seal(BLANK if blank else self._dialect.reasoning.carrier, signature, text if blank else "")
        if not blank:
            self._words("text", text)
        self._open = None

    def _seal(self, kind: str, signature: str, text: str = "") -> Words:
        words = self.assembly.words("thinking")
        self.assembly.say(words, text)
        self.assembly.seal(words, kind, signature)
        self.assembly.end(words)
        self._open = None
        return words

    def _call(self, given: Fields, signature: str) -> None:
        if given.get("partialArgs") or given.get("willContinue"):
            raise AnswerFault(Failure("config", ACTIONS["config"], _IN_PIECES))
        signed = self._seal(self._dialect.reasoning.carrier, signature) if signature else None
        call = self.assembly.call(string(given.get("id")), string(given.get("name")))
        call.signature, call.told = signed, True
        arguments = given.get("args")
        if arguments is not None and arguments != {}:  # `{}` is said of none, and of those that never came
            self.assembly.argue(call, json_text(arguments))
        self.assembly.end(call)
        self._open = None

    def _finish(self, reason: str) -> None:
        self.assembly.finish(reason)
        self.assembly.end_all()
        self.ended = True

    def _usage(self, usage: Fields) -> None:
        """Take the figures that are given, keep the others: they are cumulative."""
        for name, value in usage.items():
            if (count := number(value)) is not None:
                self._figures[name] = count
        figure = self._figures.get
        self.assembly.report_usage(
            Usage(
                figure("promptTokenCount", 0) + figure("toolUsePromptTokenCount", 0),
                figure("candidatesTokenCount", 0) + figure("thoughtsTokenCount", 0),
                figure("cachedContentTokenCount", 0),
                0,
            )
        )


def _first_candidate(response: Fields) -> Fields:
    """Return the candidate with index 0; we never ask for more than one."""
    for candidate in map(fields, items(response.get("candidates"))):
        if not candidate.get("index"):
            return candidate
    return {}
