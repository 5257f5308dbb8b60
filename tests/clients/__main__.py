"""Run the AI SDK and Codex against the strict servers, in tool conversations, without network access.

    python -m tests.clients --install     fetch the clients once (npm; about 500 MB)
    python -m tests.clients               run them, in a network namespace with only loopback (`unshare -rn`)

Prints a line for each conversation: `passed`, or the refusal or error. Exits with 0 only if all passed. The servers
run in the same namespace. Home folders are temporary, keys are dummies, telemetry and updates are off.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from actors.strict.server import LoopbackServer
from actors.testing import Call, Say, Think, Turn, serve, strict_server
from actors.testing.standin import model
from tests.saying import say

HERE = Path(__file__).resolve().parent
MODULES = HERE / "node_modules"
SECONDS = 90
"""The longest time for one conversation, in seconds."""
_INSIDE = "ACTORS_CLIENTS_INSIDE"
_PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation of the AI SDK: its provider, our dialect, and the provider's options."""

    provider: str
    dialect: str
    options: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON


_ENCRYPTED = {"openai": {"store": False, "include": ["reasoning.encrypted_content"]}}
_THINKING = {"anthropic": {"thinking": {"type": "enabled", "budgetTokens": 2048}}}
_THOUGHTS = {"google": {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"}}}
_REASONS = {"bedrock": {"reasoningConfig": {"type": "enabled", "budgetTokens": 2048}}}
CASES = (
    Case("responses", "openai_responses"),
    Case(
        "responses", "openai_responses", {"openai": {"reasoningEffort": "medium", "reasoningSummary": "auto"}}
    ),
    Case("responses", "openai_responses", {"openai": {"reasoningEffort": "medium", **_ENCRYPTED["openai"]}}),
    Case("chat", "openai_chat"),
    Case("anthropic", "anthropic"),
    Case("anthropic", "anthropic", _THINKING),
    Case("google", "gemini", _THOUGHTS),
    Case("mistral", "mistral"),
    Case("bedrock", "bedrock"),
    Case("bedrock", "bedrock", _REASONS),
    Case("compatible", "deepseek"),
    Case("compatible", "xai"),
)


def main() -> int:
    """Install or run the clients."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description="Real clients, offline.")
    parser.add_argument("--install", action="store_true", help="fetch the clients with npm and stop")
    parser.add_argument("--only", default="", help="a word in the name of the conversations to hold")
    options = parser.parse_args()
    if options.install:
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
        return subprocess.run(command, cwd=HERE, check=False).returncode
    if not MODULES.is_dir():
        say("Nothing is installed; run `python -m tests.clients --install` first.")
        return 2
    if _INSIDE not in os.environ:
        inside = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        command = [*inside, sys.executable, "-m", "tests.clients", "--only", options.only]
        return subprocess.run(command, env={**os.environ, _INSIDE: "1"}, check=False).returncode
    return anyio.run(hold_all, options.only)


async def hold_all(only: str) -> int:
    """Hold all conversations; return 1 if one was not held."""
    failed = 0
    for case in CASES:
        for how in ("whole", "streamed"):
            told = f" {json.dumps(case.options)}" if case.options else ""
            name = f"ai-sdk {case.provider} {how} -> {case.dialect}{told}"
            if only in name:
                failed += not await _sdk(name, case, how)
    if only in "codex":
        failed += not await _codex()
    return 1 if failed else 0


async def _sdk(name: str, case: Case, how: str) -> bool:
    server = strict_server(case.dialect, model(case.dialect))
    async with serve(server):
        words = ["node", "sdk.mjs", case.provider, server.base_url, how, json.dumps(case.options)]
        code, out, wrong = await _run(words, HERE)
    right = code == 0 and json.loads(out) == ["I have the result."] * 2
    return _report(name, server, right, wrong or out)


async def _codex() -> bool:
    turns = [
        Turn(Think("A command first."), Call("exec_command", {"cmd": "echo from the shell"})),
        Turn(Call("apply_patch", raw=_PATCH)),
        Turn(Say("Done.")),
        Turn(Think("Once more."), Call("exec_command", {"cmd": "cat made.txt"})),
        Turn(Say("Done again.")),
    ]
    server = strict_server("openai_responses", turns)
    codex = str(MODULES / "@openai" / "codex" / "bin" / "codex.js")
    async with serve(server):
        with tempfile.TemporaryDirectory() as home:
            (Path(home) / ".codex").mkdir()
            words = ["node", codex, "exec", "--skip-git-repo-check", "-s", "danger-full-access"]
            words += ["-c", f'openai_base_url="{server.base_url}"', "-m", "gpt-5.5"]
            code, out, wrong = await _run([*words, "Make a file."], Path(home))
            made = (Path(home) / "made.txt").exists()
            again, more, wrong_again = await _run([*words, "resume", "--last", "And read it."], Path(home))
    right = (code, again, made) == (0, 0, True) and "Done." in out and "Done again." in more
    return _report("codex -> openai_responses", server, right, wrong + wrong_again)


async def _run(words: Sequence[str], home: Path) -> tuple[int, str, str]:
    """Run a client in a new home folder; return its status, output and errors."""
    with tempfile.TemporaryDirectory() as other:
        own = str(home if home != HERE else other)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": own,
            "CODEX_HOME": f"{own}/.codex",
            "OPENAI_API_KEY": "dummy",
        }
        with anyio.move_on_after(SECONDS):
            done = await anyio.run_process(words, cwd=home, env=env, check=False, input=b"")
            return done.returncode, done.stdout.decode(), done.stderr.decode()
    return -1, "", f"not done after {SECONDS} s"


def _report(name: str, server: LoopbackServer, right: bool, wrong: str) -> bool:
    """Print the line for one conversation; return True if it was held."""
    statuses = [exchange.status for exchange in server.requests if exchange.status != 426]
    refused = [f"{refusal.rule}: {refusal.message}" for refusal in server.refusals]
    good = right and bool(statuses) and set(statuses) == {200} and not refused
    say(f"{'passed' if good else 'FAILED'} {name}: {len(statuses)} requests")
    if not good:
        say(f"       {statuses} {refused}", *(f"       {line}" for line in wrong.splitlines()[-15:]))
    return good


if __name__ == "__main__":
    sys.exit(main())
