"""The requirements of this project, as data. Each is proven by tests or planned as future work.

Tests cite them with `@pytest.mark.requirement("REQ-915-006", ...)`. `tests/project/test_requirements.py` fails for a
requirement without a test and for a test that cites an unknown one.

Kinds: U always, E on an event, S while in a state, O optional, X unwanted.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement.

    Args:
        id: Its name, as cited by tests.
        kind: U, E, S, O or X; empty for the unification items and promises.
        text: The demand.
        planned: The piece of work that will prove it; empty if tests do.
    """

    id: str
    kind: str
    text: str
    planned: str = ""


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement(
        "REQ-915-001",
        "U",
        "assembles outbound transcripts at the next-request turn boundary from canonical state",
    ),
    Requirement(
        "REQ-915-002",
        "S",
        "while a turn is in flight, generation and tool execution stay bound to the turn's provider",
    ),
    Requirement("REQ-915-003", "E", "a switch chosen after a terminal turn applies to the next request only"),
    Requirement(
        "REQ-915-004",
        "E",
        "manual switch, round robin, failover: a protocol-valid transcript for the new family with all prior state that matters",
    ),
    Requirement("REQ-915-005", "X", "malformed tool structure is never sent; it is rendered valid first"),
    Requirement(
        "REQ-915-006",
        "U",
        "every emitted result refers to exactly one earlier emitted call of the same render",
    ),
    Requirement(
        "REQ-915-007", "U", "every emitted call has one completion, real or policy-defined synthetic"
    ),
    Requirement(
        "REQ-915-008",
        "U",
        "placement as the provider requires, strict adjacency included; every real completion kept, none replaced by a synthetic one",
    ),
    Requirement(
        "REQ-915-009", "X", "several results for one call: at most one effective completion is emitted"
    ),
    Requirement("REQ-915-010", "S", "same state and provider: identical pairing and order, every time"),
    Requirement(
        "REQ-915-011",
        "S",
        "K of N completions: exactly one synthetic completion for each call without a real one",
    ),
    Requirement(
        "REQ-915-012",
        "E",
        "a partly answered batch: real completions unchanged, not duplicated; placement may change for adjacency",
    ),
    Requirement("REQ-915-013", "X", "no incomplete completion set reaches the wire"),
    Requirement("REQ-915-014", "U", "provider-neutral canonical call identity, kept across turns"),
    Requirement(
        "REQ-915-015", "E", "identities projected to the provider's format at egress, pairing unchanged"
    ),
    Requirement("REQ-915-016", "U", "projection is injective within a render"),
    Requirement("REQ-915-017", "S", "call and result carry the same projected id"),
    Requirement("REQ-915-018", "E", "OpenAI style: `call_*`"),
    Requirement("REQ-915-019", "E", "Anthropic style: `toolu_*`"),
    Requirement("REQ-915-020", "E", "Kimi: `functions.{toolName}:{globalIndex}`"),
    Requirement("REQ-915-021", "E", "Mistral: exactly 9 alphanumeric characters"),
    Requirement(
        "REQ-915-022",
        "X",
        "empty or degenerate identities still project deterministically and without collision",
    ),
    Requirement(
        "REQ-915-023", "S", "thinking included by policy: present, without breaking the tool protocol"
    ),
    Requirement("REQ-915-024", "S", "thinking excluded by policy: pairing and placement unaffected"),
    Requirement("REQ-915-025", "U", "thinking, calls, results and text mixed in one turn"),
    Requirement("REQ-915-026", "E", "compaction keeps enough truth to render valid interactions later"),
    Requirement(
        "REQ-915-027",
        "X",
        "one side of a pair compacted away: still a valid pair, real or synthetic",
    ),
    Requirement("REQ-915-028", "U", "compaction never causes an orphan call or result on the wire"),
    Requirement(
        "REQ-915-029",
        "U",
        "one tool execution and result path in interactive, one-shot and subagent mode",
    ),
    Requirement("REQ-915-030", "S", "a session-scoped scheduler in every mode"),
    Requirement("REQ-915-031", "E", "the calls of one model turn are scheduled as one parallel batch"),
    Requirement("REQ-915-032", "U", "identical filtering: no call parts among the results fed back"),
    Requirement(
        "REQ-915-033",
        "U",
        "results enter history by the same continuation path as any turn, no ad-hoc writes",
    ),
    Requirement(
        "REQ-915-034",
        "X",
        "cancellation during execution goes through the scheduler's lifecycle and the normal path",
    ),
    Requirement("REQ-915-035", "O", "a single tool may be run once outside a turn loop, without batching"),
    Requirement("REQ-915-036", "U", "the renderer enforces validity, adapters syntax and shape"),
    Requirement("REQ-915-037", "U", "validity repair lives in the renderer only; no adapter repairs"),
    Requirement("REQ-915-038", "U", "serialization is safe for complex, circular, hostile arguments"),
    Requirement(
        "REQ-915-039",
        "E",
        "diagnostics carry canonical ids, emitted call and result ids, dedupe outcome and reason, synthetic reason code, provider format",
    ),
    Requirement(
        "REQ-915-040",
        "U",
        "three fault classes told apart: canonical state, rendering (pairing, order), projection; with the canonical ids",
    ),
    Requirement("REQ-915-041", "E", "completed tool turn, then manual family switch: next request succeeds"),
    Requirement(
        "REQ-915-042", "E", "alternating providers by round robin: valid pairing and order throughout"
    ),
    Requirement("REQ-915-043", "E", "failover to another family: valid next turn"),
    Requirement("REQ-915-044", "E", "5 calls, 1 real completion: 1 real and 4 synthetic"),
    Requirement(
        "REQ-915-045", "E", "the same tool turn in the three modes: same batching, filtering, continuation"
    ),
    Requirement(
        "REQ-915-046", "U", "tool state lives as long as the session and can be rebuilt from history"
    ),
    Requirement(
        "REQ-915-047",
        "X",
        "a tool call found in a tool-role message is attributed correctly before rendering",
    ),
    Requirement(
        "REQ-915-048", "U", "status from content: error, else is_complete, else non-null result, else pending"
    ),
    Requirement("REQ-915-049", "S", "non-empty identities project without collision"),
    Requirement("REQ-915-050", "X", "a switch requested during a turn is deferred to the end of the turn"),
    Requirement("U-01", "", "one loop for text streaming, tool-call capture, execution and continuation"),
    Requirement(
        "U-02", "", "a provider-independent event protocol: text, tool_call, status, error, complete"
    ),
    Requirement(
        "U-03", "", "canonical calls `{id, name, args, raw}`; ids kept end to end and used for all results"
    ),
    Requirement(
        "U-04", "", "thin adapters: message format and stream events only, no orchestration by provider"
    ),
    Requirement(
        "U-05",
        "",
        "arguments validated before execution; invalid ones give a structured `tool_error` with the missing fields",
    ),
    Requirement("U-06", "", "a bounded self-correction loop; a tool is never run again and again with `{}`"),
    Requirement(
        "U-07",
        "",
        "Anthropic pairing strict, several calls in one assistant turn; results without a valid call id are rejected or skipped, and reported",
    ),
    Requirement(
        "U-08",
        "",
        "counters per provider: `tool_calls_total`, `tool_calls_invalid_args`, `tool_calls_repaired`, `tool_api_400_total`, `tool_loop_max_iterations`",
    ),
    Requirement("U-09", "", "streaming and non-streaming through the same path"),
    Requirement("U-10", "", "all parallel calls of a response kept"),
    Requirement("U-11", "", "Gemini's stream events aligned with the canonical ones"),
    Requirement(
        "U-12",
        "",
        "OpenAI and OpenRouter streams normalized; a fallback wrapper gives the canonical events where a backend cannot stream",
    ),
    Requirement("U-13", "", "at the iteration limit, a forced final text"),
    Requirement(
        "U-14",
        "",
        "failure rates per provider comparable over time; the stream stays incremental for the user while tools run",
    ),
    Requirement("PROMISE-1", "", "No outbound request is ever refused by a provider for its tool structure."),
    Requirement(
        "PROMISE-2",
        "",
        "A recorded real result is never lost, repeated or replaced by a synthetic one, or a note where a provider "
        "refused media. A rewind may remove it from the history, never from the log.",
    ),
    Requirement("PROMISE-3", "", "Rendering is a pure function: same inputs, same bytes, in every process."),
    Requirement(
        "PROMISE-4",
        "",
        "Within one epoch of a lane, the sent transcript only grows: earlier content is a prefix of later content.",
    ),
    Requirement(
        "PROMISE-5",
        "",
        "A turn is served by one binding from its first request to its end; a switch takes effect at the boundary.",
    ),
    Requirement(
        "PROMISE-6",
        "",
        "A durable event, once seen, survives kill -9, given a durable journal.",
    ),
    Requirement(
        "PROMISE-7",
        "",
        "A tool whose completion was recorded is never run again; one that may have run has an unknown outcome.",
    ),
    Requirement(
        "PROMISE-8",
        "",
        "One session's crash, slow consumer or runaway tool does not disturb another session.",
    ),
    Requirement("PROMISE-9", "", "Every mailbox and buffer is bounded. Overload raises a typed error early."),
    Requirement(
        "PROMISE-10",
        "",
        "Cancel closes every call of the turn promptly; a tool that returns later gives a late result.",
    ),
    Requirement("PROMISE-11", "", "Everything holds on asyncio and on trio."),
    Requirement(
        "PROMISE-12",
        "",
        "No host, tool or callback can crash the runtime or prevent its shutdown.",
    ),
    Requirement(
        "PROMISE-13",
        "",
        "Nothing is invented, assumed or omitted silently: it appears in a human-readable report.",
    ),
    Requirement(
        "PROMISE-14",
        "",
        "The runtime requests prompt caching where necessary; 99 % of an ideal cache's reads are read.",
    ),
)
