"""Mistakes where this library meets a platform, a terminal or a command line."""

from tests.teeth.mutations.mutation import Mutation

SQLITE = "tests/test_sqlite.py"
CHAT = "tests/cli/test_chat_terminal.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "platform: a file is taken where nothing could lock it",
        "actors/storage/sqlite/storage.py",
        "        check_platform(self.path)\n",
        "",
        (SQLITE,),
    ),
    Mutation(
        "platform: the locks are imported with the storage",
        "actors/storage/sqlite/locks.py",
        "import os\nimport sys\n",
        "import fcntl\nimport os\nimport sys\n",
        (SQLITE,),
    ),
    Mutation(
        "platform: what cannot be written is left to the interpreter, which fails with a code of its own",
        "actors/cli/__init__.py",
        "    finally:\n        _abandon_what_cannot_be_written()\n",
        "    finally:\n",
        (f"{CHAT}::test_what_nobody_can_be_shown_any_more_changes_no_exit_code",),
    ),
    Mutation(
        "platform: the end of a terminal is taken for the end of what somebody typed",
        "actors/cli/keyboard.py",
        "self._ended and self._is_terminal and not os.isatty(self._descriptor)",
        "False",
        (f"{CHAT}::test_what_nobody_can_be_shown_any_more_changes_no_exit_code",),
    ),
)
