"""What a dialect says of each concern: its ids, its turns, its media, its reasoning, its requests.

The records here hold what any wire family can say. `actors.core.dialects.dialect` narrows them family by family. Rule
ids such as ANT-07 are explained in docs/reference/rulebook.md, which lists every field with its docstring.
"""

from typing import Any, ClassVar, Literal, TypeAlias, dataclass_transform

from msgspec import Struct, StructMeta

IdStyle: TypeAlias = Literal["openai", "anthropic", "mistral", "kimi", "bedrock", "none"]
Role: TypeAlias = Literal["user", "assistant", "tool"]
Kind: TypeAlias = Literal["image", "document"]
Family: TypeAlias = Literal["openai_chat", "responses", "anthropic", "gemini", "converse"]
"""A wire format, which one adapter encodes and decodes."""


class _ByKeyword(StructMeta):
    def __new__(mcls, *described: Any, **options: Any) -> "_ByKeyword":  # Any: what a class statement holds
        return super().__new__(mcls, *described, **options, kw_only=True)  # which is not inherited


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Demands(Struct, metaclass=_ByKeyword, frozen=True):
    """A profile, or what it demands in one concern."""


class Ids(Demands):
    """How calls and tools are named.

    Args:
        style: How the ids we mint look (REQ-915-018 to -021). `none`: the protocol pairs by position, and only ids
            the provider gave go back, where `native_passthrough` allows.
        pattern: What every emitted id must match in full.
        max_len: Longest id emitted, in characters.
        accepted: What an id must match in full that somebody else emitted, where the host takes more than we do.
        unique_scope: Where a repeated call id is refused.
        native_passthrough: Whether a call made by the same binding keeps the id its provider gave it.
        tool_name_pattern: What a tool name must match in full, in `tools` and in history alike.
    """

    style: IdStyle
    pattern: str
    max_len: int
    tool_name_pattern: str
    accepted: str | None = None
    unique_scope: Literal["message", "transcript"] = "transcript"
    native_passthrough: bool = True


class TurnRules(Demands):
    """Who speaks when, and how calls and their results stand among what is said.

    Args:
        arguments: How a call's arguments travel: as a JSON object, or as the text that the model wrote.
        result_carrier: A `tool` message for each result, blocks at the beginning of one user message, or an item each.
        error_prefix: The word before the text of a failed result.
        empty_result: What is said for a result without words, where a blank text is refused (BED-04) or cannot be
            marked (ANT-33); None sends it as it is.
        first_roles, last_roles: Roles a transcript may begin and end with.
        alternation: `merge_same` puts neighbours of one role into one message, as a block list; `fill` puts a
            constant message of the other role between them (CMP-01).
        user_after_tool: Whether a user message may follow a result, or a constant assistant text goes between.
        calls_together: Whether an assistant message may hold several calls; where not, each goes with its own result
            (CMP-02).
        calls_last: Whether what the model says in a message stands before what it calls, so that results follow
            directly (OAR-14). OpenAI's own host takes any order, and so the reasoning between them too.
        drop_empty_text: Whether empty and whitespace-only texts are left out.
        max_string: Longest string accepted, in characters. Longer texts are split; results are cut where they come in.
        filler_first, filler_last, filler_between: Constant texts where the protocol needs a message and there is none.
    """

    arguments: ClassVar[Literal["object", "text"]]
    result_carrier: ClassVar[Literal["tool_message", "user_block", "item"]]
    first_roles: frozenset[Role] = frozenset({"user", "assistant"})
    last_roles: frozenset[Role] = frozenset({"user", "tool"})
    alternation: Literal["none", "merge_same", "fill"] = "none"
    user_after_tool: Literal["allowed", "filler"] = "allowed"
    calls_together: bool = True
    calls_last: bool = False
    drop_empty_text: bool = True
    max_string: int | None = None
    filler_first: str = "(The conversation so far follows.)"
    filler_last: str = "(Please continue.)"
    filler_between: str = "(Noted.)"


class MediaRules(Demands):
    """Which attachments are taken, where, and how many.

    Args:
        result_kinds, user_kinds: What a result and a user message can hold.
        types: MIME types taken, of those kinds.
        max_bytes: Most bytes of one image as base64, the stricter reading (ANT-30); None where no cap is stated.
        max_count: Most attachments a request holds, images and documents counted together, the stricter reading where
            a figure is stated for images alone; None where none is stated. Later ones are noted in a text.
        max_documents: Most documents among them (BED-16).
        named_documents: Whether each document has a name that no other document of the request has (BED-15).
        urls: Whether media may be given as an address that the provider fetches.
    """

    named_documents: ClassVar[bool] = False
    types: frozenset[str]
    user_kinds: frozenset[Kind] = frozenset({"image", "document"})
    max_bytes: int | None = None
    max_count: int | None = None
    max_documents: int | None = None
    urls: bool = True


class ReasoningRules(Demands):
    """How native thinking goes back to its maker.

    Args:
        carrier: How native thinking travels. Of `extra_content`, which is Google's copy of Chat Completions, the
            signature of a call alone goes back, in the call.
        field: Under which name the words go back where the carrier is `reasoning_content`. Both are read.
        binding: Who may open a sealed block: nobody, the same model of the same account, the same behind the same
            upstream of a gateway, or only the same with an unchanged prefix.
        first: Whether a message that holds thinking must begin with it (ANT-39). The newest models write and take it
            in the middle; until a profile says so, thinking elsewhere is not sent.
        followed: Whether something of the same message must stand behind thinking (OAR-03, ANT-52).
        once: Whether a reasoning item, told by the id inside it, may be sent once only (OAR-07).
        alone: Whether an assistant message may hold thinking and nothing else.
        required: Which assistant messages must have thinking: those with calls (KIM-03), in front of their first call
            (GEM-04), every one (DSK-05), or none.
        placeholder: What stands in where they have none of their own.
        switch: How a request asks for thinking.
    """

    once: ClassVar[bool] = False
    carrier: str
    binding: Literal["none", "model", "upstream", "prefix"]
    first: bool = True
    followed: bool = False
    alone: bool = True
    required: Literal["no", "with_calls", "before_calls", "every"] = "no"
    placeholder: str = ""
    switch: Literal["none", "anthropic", "type", "effort", "reasoning", "gemini", "gemini_budget"] = "none"

    @property
    def is_fixed_in_loop(self) -> bool:
        """True if a tool loop that began without thinking must end without it (ANT-40)."""
        return self.switch == "anthropic"


OVERFLOW = (
    r"context_length_exceeded",
    r"prompt is too long",
    r"input length and .max_tokens. exceed context limit",
    r"input token count .* exceeds the maximum",
    r"maximum context length is",
    r"exceeds the context window",
    r"maximum prompt length is",
    r"Input is too long for requested model",
    r"exceeded model token limit",
    r"too large for model with .* maximum context length",
    r"exceeds the available context size",
    r"exceed_context_size_error",
    r"context window exceeds limit",
    r"reduce the length of the messages",
    r"greater than the context length",
)
"""The words by which providers say that a prompt is too long: regular expressions, searched in `type code message`
without regard to case."""


OutputMeans: TypeAlias = Literal["schema", "tool", "prompt"]
Patterns: TypeAlias = Literal["any", "plain", "none"]


class RequestRules(Demands):
    """What a request says beside its messages, and how a refusal for its length is known.

    Args:
        namespaces: Whether tools may be in groups, each with a name.
        custom_tools: Whether there are tools that take free text, and no object.
        schema_subset: What a tool's JSON Schema is projected to.
        patterns: Which regular expressions a schema may hold: `any`, `plain` ones without lookarounds, named groups
            and flags, of which a grammar can be made (CMP-03), or `none`.
        max_tokens_default: Most tokens of an answer where nobody said (Anthropic requires the field); None for the
            model's own.
        max_tools: Most tools a request may declare.
        forced_choice: Whether a tool may be forced; where not, `auto` is sent and the loss is reported.
        named_choice: Whether one tool may be forced by its name; where not, any tool is forced and the loss
            is reported.
        sampling: Whether sampling settings are accepted; where not, they are omitted and the loss is reported.
        max_temperature: Highest temperature taken; a higher one is left out, and the loss reported.
        top_p: Whether `top_p` is taken beside a temperature, or `alone` only; what is not, is left out and reported.
        output: How a model is best told the form of its answer: by a schema in the request, by a tool that stands for
            the answer and is forced, or in words.
        output_beside_tools: Whether a schema in the request may stand beside tools; where not, words do.
        output_schema: `closed` where the schema must close every object and says no bounds, recursion or open object;
            `filled` where each of its objects must have properties besides.
        lacks: Settings for which the host has no field though its wire family has one (`actors.core.settings.table`).
            They are omitted and reported as a loss.
        max_stops: Most stop sequences taken, the rest being left out and reported; 0 where there is no such setting.
        overflow_patterns: Regular expressions that recognise a context overflow in an error text.
        overflow_rule: The rule a context overflow breaks.
    """

    namespaces: ClassVar[bool] = False
    custom_tools: bool = False
    patterns: Patterns = "any"
    max_tools: int | None = None
    forced_choice: Literal["yes", "no", "not_when_thinking"] = "yes"
    named_choice: bool = True
    sampling: bool = True
    max_temperature: float = 2.0
    top_p: Literal["beside", "alone"] = "beside"
    lacks: frozenset[str] = frozenset()
    max_stops: int = 4
    output: OutputMeans = "prompt"
    output_beside_tools: bool = False
    output_schema: Literal["any", "closed", "filled"] = "any"
    overflow_patterns: tuple[str, ...] = OVERFLOW
    overflow_rule: str | None = None
