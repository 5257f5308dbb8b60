"""Mistakes where this library meets a platform, a terminal or a command line."""

from tests.teeth.mutations.mutation import Mutation

SQLITE = "tests/test_sqlite.py"

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
)
