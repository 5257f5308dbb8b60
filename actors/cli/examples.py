"""What each command's help ends with: lines to try. Only what is true of every installation stands here."""

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "demo": (
        ("actors demo", "a broken history is refused, then carried from one provider to another"),
        ("actors demo --all --json", "through every dialect, for a program to read"),
    ),
    "run": (
        ("actors run --offline hello", "without a key or a network"),
        ("actors run -m openai:gpt-5.2 'explain this:' < main.py", "a prompt and standard input"),
        (
            "actors run -m anthropic:claude-sonnet-5 --tools tools.py --max-rounds 5 'book a room'",
            "with tools",
        ),
        (
            "actors run -m openai:gpt-5.2 --mcp files='npx -y @modelcontextprotocol/server-filesystem .' 'which?'",
            "with those of an MCP server",
        ),
        ("actors run --offline --json 'please roll' | tail -1", "events; the last has the exit code"),
    ),
    "chat": (
        ("actors chat --offline", "talk to stand-ins; say `please roll`, then /switch claude"),
        ("actors chat --config actors.toml -m mine --tools app.tools:all", "your backends and tools"),
        ("actors chat --offline --plain", "whole lines only, for screen readers"),
    ),
    "sessions": (
        ("actors sessions list", "what is kept, those used last first"),
        ("actors sessions fork trip --at 12", "another conversation, as this one was behind event 12"),
        ("actors sessions export trip --out trip.jsonl", "a file that `import` takes on another machine"),
    ),
    "replay": (
        ("actors replay trip --to mistral", "what Mistral would have been sent, and what it would refuse"),
        ("actors replay trip.jsonl --to anthropic --json", "of an exported file, for a program to read"),
    ),
    "models": (("actors models", "providers, and whose keys are set"),),
    "doctor": (("actors doctor --config actors.toml --network", "whether everything is there and answers"),),
    "explain": (
        ("actors explain ANT-12", "a rule of a provider"),
        ("actors explain refusal.json --dialect anthropic", "what a provider answered"),
    ),
    "lint": (
        ("actors lint body.json --for anthropic", "what it would refuse"),
        ("actors lint body.json --from openai --for anthropic", "what would have to be repaired"),
    ),
    "convert": (
        ("actors convert body.json --to anthropic > valid.json", "repairs are told on standard error"),
    ),
    "preview": (("actors preview body.json --to mistral", "what would be sent, and what not"),),
    "simulate": (
        ("actors simulate --dialect openai --port 8080", "a strict server for any client"),
        ("actors simulate --dialect anthropic --fault 0:429=1", "whose first request meets a rate limit"),
    ),
    "stress": (
        ("actors stress --sessions 200 --turns 5", "strict servers on this machine"),
        ("actors stress mine --config actors.toml --tools app.tools:all", "your own backends and tools"),
    ),
    "stats": (("actors stats events.jsonl", "of a file that `actors run --json` wrote"),),
    "fsck": (
        ("actors fsck sessions.db", "1 if anything in it has changed or is missing"),
        ("actors fsck sessions.db --salvage saved.db", "what is whole, in a new journal"),
    ),
    "completion": (('eval "$(actors completion bash)"', "in ~/.bashrc"),),
}
"""By command: what to type, and what it shows."""


def examples(command: str) -> str:
    """Return a command's examples as its help shows them."""
    lines = [f"  {line}\n      {what}" for line, what in EXAMPLES.get(command, ())]
    return "\n".join(("examples:", *lines)) if lines else ""
