"""Mistakes in what a program imports before it needs it."""

from tests.teeth.mutations.mutation import Mutation

LATER = (
    "tests/project/test_public.py::test_a_runtime_imports_no_event_loop_and_nothing_that_only_its_use_needs"
)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "start: logging is imported before there is anything to log",
        "actors/telemetry/logger.py:zip_longest",
        "from itertools import islice, zip_longest",
        """
        import logging
        from itertools import islice, zip_longest
        """,
        (LATER,),
    ),
    Mutation(
        "start: a type that only annotates makes anyio import its locks and events",
        "actors/runtime/registry.py:Reservation.over",
        'over: "anyio.Event | None" = None',
        "over: anyio.Event | None = None",
        (LATER,),
    ),
    Mutation(
        "start: what drives turns is imported with the runtime",
        "actors/runtime/session_actors.py:RESTART",
        "RESTART = ...",
        "RESTART = ...\nfrom actors.session.session_actor import SessionActor",
        (LATER,),
    ),
    Mutation(
        "start: the judges of all families are imported with the first",
        "actors/core/check/__init__.py:msgspec",
        "import msgspec",
        """
        import msgspec
        import actors.core.check.gemini
        """,
        (LATER,),
    ),
    Mutation(
        "start: whoever names a content imports OpenSSL at once",
        "actors/core/values/identity.py:re",
        "import re",
        """
        import hashlib
        import re
        """,
        (LATER,),
    ),
)
