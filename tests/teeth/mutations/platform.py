"""Mutations of the use of a platform, a terminal or a command line."""

from tests.teeth.mutations.mutation import Mutation

SQLITE = "tests/journal/test_sqlite.py"
SERVERS = "tests/cli/test_mcp_servers.py"
CHAT = "tests/cli/test_chat_terminal.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "platform: a file journal is accepted without file locks",
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
        "platform: a failed write is left to the interpreter and its exit code",
        "actors/cli/__init__.py:main",
        "_discard_unwritable_output()",
        "",
        (f"{CHAT}::test_unwritable_output_does_not_change_the_exit_code",),
    ),
    Mutation(
        "platform: the end of a terminal counts as the end of typed input",
        "actors/cli/terminal.py:Keyboard._read_more",
        "self._ended and self._is_terminal and (not os.isatty(self._descriptor))",
        "False",
        (f"{CHAT}::test_unwritable_output_does_not_change_the_exit_code",),
    ),
    Mutation(
        "servers: approval options do not apply to tools of MCP servers",
        "actors/cli/targets.py:_with_verdicts",
        "not verdicts",
        "verdicts",
        (SERVERS,),
    ),
    Mutation(
        "servers: an invalid server is quoted with its secrets",
        "actors/cli/targets.py:_server_from_option",
        'f"--mcp {name!r} is neither a command nor a URL; check the quotes"',
        'f"--mcp {name!r} is neither a command nor a URL: {command_or_url}"',
        (SERVERS,),
    ),
    Mutation(
        "servers: a name from the file can be redefined",
        "actors/cli/targets.py:_server_from_option",
        "name in config.settings.mcp",
        "False",
        (SERVERS,),
    ),
)
