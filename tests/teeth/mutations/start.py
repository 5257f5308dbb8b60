"""Mistakes in what a program imports before it needs it."""

from tests.teeth.mutations.mutation import Mutation

LATER = "tests/test_public.py::test_a_runtime_imports_no_event_loop_and_nothing_that_only_its_use_needs"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "start: logging is imported before there is anything to log",
        "actors/telemetry/__init__.py",
        "from itertools import zip_longest\n",
        "import logging\nfrom itertools import zip_longest\n",
        (LATER,),
    ),
    Mutation(
        "start: a type that only annotates makes anyio import its locks and events",
        "actors/hosting/passive.py",
        '    over: "anyio.Event"',
        "    over: anyio.Event",
        (LATER,),
    ),
    Mutation(
        "start: what drives turns is imported with the runtime",
        "actors/hosting/session_actors.py",
        "import Activation\n    from actors.session import SessionActor\n",
        "import Activation\nfrom actors.session import SessionActor\n",
        (LATER,),
    ),
    Mutation(
        "start: the judges of all families are imported with the first",
        "actors/core/check/__init__.py",
        "import msgspec\n",
        "import msgspec\n\nimport actors.core.check.gemini\n",
        (LATER,),
    ),
    Mutation(
        "start: whoever names a content imports OpenSSL at once",
        "actors/core/identity.py",
        "import re\nfrom functools import lru_cache\n",
        "import hashlib\nimport re\nfrom functools import lru_cache\n",
        (LATER,),
    ),
)
