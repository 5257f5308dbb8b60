"""Google's generateContent: an answer's bytes in, canonical events and a message out.

Every event of a stream is a whole response with the parts that are new, so a whole body reads as a stream of
one event. The answer ends with the stream, if a finish reason was seen; there is no `[DONE]`. Calls come whole: Vertex
sends them in pieces only to requests that ask for that, and a piece must never be run as a call.

Parts keep their order and their borders, because a thought signature belongs to one part: text is joined with the
text before it only where neither is signed. A signature becomes a thinking block directly before what its part
becomes; that of a blank text, as streams end on, one with the blank text in it. Parts marked as thought are summaries
for people: shown, and never sent back, with their signatures.
"""

from typing import Literal

from actors.adapters.arriving import Words
from actors.adapters.base import Decoder
from actors.adapters.calls import real_word
from actors.adapters.classify import cut
from actors.adapters.document import LongText
from actors.adapters.failure import broken
from actors.adapters.gemini.encode import BLANK
from actors.adapters.wire import Fields, fields, first, items, long_string, string

_KEPT = frozenset({"text", "functionCall"})
_FLAGS = frozenset({"thought", "thoughtSignature"})
_OWN = frozenset({"executableCode", "codeExecutionResult", "toolCall", "toolResponse"})
_BESIDE = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
_IN_PIECES = "a call came in pieces (partialArgs), which was not asked for"
_FIGURES = {
    "promptTokenCount": (0,),
    "toolUsePromptTokenCount": (0,),
    "candidatesTokenCount": (1,),
    "thoughtsTokenCount": (1,),
    "cachedContentTokenCount": (2,),
}


class GenerateContentDecoder(Decoder):
    """Reads responses, whole or in pieces."""

    def body(self, body: Fields) -> None:
        self.event("", body)
        self.stream_end()
        if not self.ended:
            raise broken("the body holds no finished candidate")

    def stream_end(self) -> None:
        """End the answer if it has a finish reason. Relays give one with each event, or ahead of the words."""
        if self.finish_reason is not None:
            if cut(self.finish_reason) != "paused":
                self.continuation = ""  # one that was good in the middle of the stream
            self.end_all()
            self.ended = True

    def done(self) -> None:
        self.stream_end()

    def event(self, name: str, payload: Fields) -> None:
        if payload.get("error"):
            self.report(payload)
        if usage := payload.get("usageMetadata"):
            self.count(usage, _FIGURES)
        if blocked := string(fields(payload.get("promptFeedback")).get("blockReason")):
            raise broken(f"the prompt was blocked: {blocked!r}", "refusal", blocked)
        candidate = first(payload.get("candidates"))
        for part in items(fields(candidate.get("content")).get("parts")):
            self._part(fields(part))
        for name in _BESIDE:
            self.mark(name, candidate.get(name), more=False)
        self.leave_out_once("logprobsResult", candidate.get("logprobsResult"))
        if reason := real_word(candidate.get("finishReason")):
            self.finish(reason)
        if token := real_word(candidate.get("continuationToken")):
            self.continuation = token

    def _part(self, part: Fields) -> None:
        signature = string(part.get("thoughtSignature"))
        if _KEPT.isdisjoint(part) and not part.keys() <= _FLAGS:
            self._provider_part(part)
        elif part.get("thought") is True:
            self._text("thinking", long_string(part.get("text")))
        elif isinstance(call := part.get("functionCall"), dict):
            self._text("text", string(part.get("text")))
            self._function_call(call, signature)
        elif signature and isinstance(text := part.get("text", ""), str | LongText):
            self._signed_text(text, signature)
        else:
            self._text("text", long_string(part.get("text")))

    def _provider_part(self, part: Fields) -> None:
        """Take a part that is Google's own, its signature in it. That of an image is worth nothing without the part."""
        name = next(name for name in part if name not in _FLAGS)
        image = fields(part[name]) if name == "inlineData" else {}
        if data := string(image.get("data")):
            self.media(string(image.get("mimeType")) or "application/octet-stream", data)
            self.leave_out_once("thoughtSignature", part.get("thoughtSignature"))
        else:
            goes_back = name in _OWN and part.keys() - _FLAGS == {name} and part.get("thought") is not True
            self.native(name, dict(part), goes_back=goes_back).done = True

    def _text(self, kind: Literal["text", "thinking"], text: str | LongText, *, signed: bool = False) -> None:
        """Go on with the text before, if that is of this kind and not signed."""
        if text:
            before = self.latest_words(kind)
            words = self.words(kind) if before.done else before
            self.say(words, text)
            words.done = signed

    def _signed_text(self, text: str | LongText, signature: str) -> None:
        if isinstance(text, str) and not text.strip():
            self._signature(BLANK, signature, text)
        else:
            self._signature(self.dialect.reasoning.carrier, signature)
            self._text("text", text, signed=True)

    def _signature(self, kind: str, signature: str, text: str = "") -> Words:
        words = self.words("thinking")
        self.say(words, text)
        self.seal(words, kind, signature)
        self.end(words)
        return words

    def _function_call(self, given: Fields, signature: str) -> None:
        if given.get("partialArgs") or given.get("willContinue"):
            raise broken(_IN_PIECES, "config")
        before = self.minted
        call = self.fragment(None, given.get("id"), given.get("name"))
        self.argue(call, self.arguments(given.get("args")))
        if signature and self.minted > before:
            self.sign(call, self.dialect.reasoning.carrier, signature)
        call.told = call.is_closed = True  # `{}` is said of no arguments, and of those that never came
        self.end(call)
