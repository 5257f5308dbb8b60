"""Mistakes where this library meets a platform, a terminal or a command line."""

from tests.teeth.mutations.mutation import Mutation

SQLITE = "tests/journal/test_sqlite.py"
SERVERS = "tests/cli/test_mcp_servers.py"
CHAT = "tests/cli/test_chat_terminal.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "platform: a file is taken where nothing could lock it",
        "actors/journal/storage/sqlite/storage.py:SqliteStorage.__init__",
        "check_platform(self.path)",
        "",
        (SQLITE,),
    ),
    Mutation(
        "platform: the locks are imported with the storage",
        "actors/journal/storage/sqlite/locks.py:os",
        "import os",
        """
        import fcntl
        import os
        """,
        (SQLITE,),
    ),
    Mutation(
        "platform: what cannot be written is left to the interpreter, which fails with a code of its own",
        "actors/cli/__init__.py:main",
        "_discard_unwritable_output()",
        "",
        (f"{CHAT}::test_unwritable_output_does_not_change_the_exit_code",),
    ),
    Mutation(
        "platform: the end of a terminal is taken for the end of what somebody typed",
        "actors/cli/keyboard.py:Keyboard._read_more",
        "self._ended and self._is_terminal and (not os.isatty(self._descriptor))",
        "False",
        (f"{CHAT}::test_unwritable_output_does_not_change_the_exit_code",),
    ),
    Mutation(
        "servers: what the command line says of a tool does not hold for those of MCP servers",
        "actors/cli/servers.py:_with_verdicts",
        "not verdicts",
        "verdicts",
        (SERVERS,),
    ),
    Mutation(
        "servers: what is wrong with a server is quoted, secrets and all",
        "actors/cli/servers.py:_server_from_option",
        'f"--mcp {name!r} is neither a command nor a URL; check the quotes"',
        'f"--mcp {name!r} is neither a command nor a URL: {place}"',
        (SERVERS,),
    ),
    Mutation(
        "servers: a name is given to another server than the file's",
        "actors/cli/servers.py:_server_from_option",
        "name in config.settings.mcp",
        "False",
        (SERVERS,),
    ),
)
