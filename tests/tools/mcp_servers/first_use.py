"""Open an MCP server for the first time in this process, and print the SDK modules that each thread imported.

    python -m tests.tools.mcp_servers.first_use BACKEND

Prints a JSON object: by `loop` and `thread`, the modules imported by the event loop's thread and by others.
"""

import json
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import anyio

from actors import mcp
from actors.kernel import System
from actors.tools.toolsets import Toolsets

PACKAGES = ("mcp", "mcp_types", "httpx2", "actors.tools.mcp.connection", "actors.tools.mcp.transports")
TABLE: dict[str, dict[str, list[object]]] = {"tools/list": {"tools": []}}


class ImportRecorder(MetaPathFinder):
    """Finds nothing, and records the thread that imports each module."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {"loop": [], "thread": []}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_loop = threading.current_thread() is threading.main_thread()
        self.seen["loop" if is_loop else "thread"].append(name)
        return None


async def main(watcher: ImportRecorder) -> None:
    """Open two servers at the same time, as two sessions do."""
    sources = [
        mcp.stdio(
            sys.executable, ["-m", "tests.tools.mcp_servers.raw", json.dumps(TABLE)], name=f"raw{number}"
        )
        for number in range(2)
    ]
    with anyio.fail_after(60):
        async with System() as system:
            sys.meta_path.insert(0, watcher)
            sets = Toolsets(system, lambda name: sources[0])
            async with anyio.create_task_group() as tasks:
                for source in sources:
                    tasks.start_soon(sets.open, [source], lambda _: None)
            await sets.close()


if __name__ == "__main__":
    watcher = ImportRecorder()
    anyio.run(main, watcher, backend=sys.argv[1])
    seen = {who: [name for name in names if name.startswith(PACKAGES)] for who, names in watcher.seen.items()}
    sys.stdout.write(json.dumps(seen))
