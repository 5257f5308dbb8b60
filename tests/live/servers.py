"""The real servers for live tests, from the environment. Without them, these tests are skipped.

A running server:

    ACTORS_LIVE_OPENAI      base URL of a Chat Completions server, such as http://127.0.0.1:8080/v1
    ACTORS_LIVE_RESPONSES   base URL of an OpenAI Responses server
    ACTORS_LIVE_ANTHROPIC   base URL of an Anthropic Messages server, such as http://127.0.0.1:8080
    ACTORS_LIVE_MODEL       the model's name on all of them

Or a llama.cpp server that the tests start and stop, once per template:

    ACTORS_LIVE_LLAMA       path of `llama-server`
    ACTORS_LIVE_GGUF        path of the model; default: random weights (`tests.live.random_model`)
    ACTORS_LIVE_TEMPLATES   chat templates: a directory of NAME.jinja files, or files joined by `:`; default: the
                            model's own

In both cases:

    ACTORS_LIVE_DIALECT     a TOML file with fields of a `[dialects.NAME]` table, for requirements of the model's
                            template beyond docs/how-to/backends.md
    ACTORS_LIVE_HISTORIES   the number of generated histories per protocol, default 50

No key is sent.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from actors.config.providers import Kind
from tests.live.conversation import Live
from tests.live.llama_server import run_server
from tests.live.random_model import model

VARIABLES: dict[Kind, str] = {
    "llama_cpp": "ACTORS_LIVE_OPENAI",
    "openai_responses": "ACTORS_LIVE_RESPONSES",
    "anthropic": "ACTORS_LIVE_ANTHROPIC",
}
KINDS = tuple(VARIABLES)
HISTORIES = int(os.environ.get("ACTORS_LIVE_HISTORIES", "50"))

_PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "backends.md"
_OPTIONS = ("-c", "65536", "-np", "1", "--seed", "1")
"""Context size for the longest generated history, at one token per byte, plus a usable answer."""


@dataclass(frozen=True)
class Host:
    """One model and its protocols."""

    servers: Mapping[Kind, Live]

    def live(self, kind: Kind, *, stream: bool = True) -> Live | None:
        """Return the server for a protocol, if there is one."""
        found = self.servers.get(kind)
        return found and replace(found, stream=stream)


def templates() -> dict[str, Path | None]:
    """Return the templates for starting servers, by name; the model's own is None."""
    told = os.environ.get("ACTORS_LIVE_TEMPLATES", "")
    paths = [Path(part) for part in told.split(os.pathsep) if part]
    files = [file for path in paths for file in (sorted(path.glob("*.jinja")) if path.is_dir() else [path])]
    return {file.stem: file for file in files} or {"own": None}


@contextmanager
def start_server(template: Path | None, folder: Path) -> Iterator[Host]:
    """Start a llama.cpp server with a template, as the environment specifies. A random model is stored in `folder`."""
    options = [*_OPTIONS, *(["--chat-template-file", str(template)] if template else [])]
    if told := os.environ.get("ACTORS_LIVE_GGUF"):
        gguf = Path(told)
    else:
        gguf = folder / "random.gguf"
        gguf.write_bytes(model())
        options += ["-t", "1"]  # more threads would only wait for each other
    with run_server(Path(os.environ["ACTORS_LIVE_LLAMA"]), gguf, options) as url:
        urls = {kind: url if kind == "anthropic" else f"{url}/v1" for kind in KINDS}
        yield Host({kind: Live(kind, urls[kind], "model", wants(kind)) for kind in KINDS})


def running_servers() -> Host:
    """Return the running servers named by the environment."""
    name = os.environ.get("ACTORS_LIVE_MODEL", "")
    urls = {
        kind: os.environ[variable].rstrip("/")
        for kind, variable in VARIABLES.items()
        if variable in os.environ
    }
    return Host({kind: Live(kind, url, name, wants(kind)) for kind, url in urls.items()} if name else {})


def wants(kind: Kind) -> dict[str, Any]:  # Any: each field has its own type
    """Return the requirements of llama.cpp for a protocol from docs/how-to/backends.md, with those of the file."""
    page = re.findall(r"^```toml\n(.*?)^```$", _PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    [config] = [found for found in map(tomllib.loads, page) if "llama_messages" in found.get("dialects", {})]
    [name] = [backend["dialect"] for backend in config["backends"].values() if backend["kind"] == kind]
    table = {key: value for key, value in config["dialects"][name].items() if key != "base"}
    file = os.environ.get("ACTORS_LIVE_DIALECT")
    return table | (tomllib.loads(Path(file).read_text(encoding="utf-8")) if file else {})
