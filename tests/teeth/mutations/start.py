"""Mutations of lazy imports."""

from tests.teeth.mutations.mutation import Mutation

LATER = "tests/project/test_public.py::test_creating_a_runtime_imports_no_event_loop_and_no_lazy_module"
IMPORTED = (
    "tests/project/test_public.py"
    "::test_importing_the_runtime_class_imports_no_package_that_opens_or_runs_sessions"
)
DECODERS = (
    "tests/project/test_public.py"
    "::test_decoders_import_the_wordings_of_errors_only_for_an_answer_with_an_error"
)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "start: logging is imported before the first log event",
        "actors/telemetry/logger.py:zip_longest",
        "from itertools import islice, zip_longest",
        """
        import logging
        from itertools import islice, zip_longest
        """,
        (LATER,),
    ),
    Mutation(
        "start: a type used only in annotations makes anyio import its locks and events",
        "actors/runtime/registry.py:Reservation.freed",
        'freed: "anyio.Event | None" = None',
        "freed: anyio.Event | None = None",
        (LATER,),
    ),
    Mutation(
        "start: the turn driver is imported with the runtime",
        "actors/runtime/session_actors.py:RESTART",
        "RESTART = ...",
        "RESTART = ...\nfrom actors.session.session_actor import SessionActor",
        (LATER,),
    ),
    Mutation(
        "initial_state: the judges of all families are imported with the first",
        "actors/core/check/__init__.py:msgspec",
        "import msgspec",
        """
        import msgspec
        import actors.core.check.gemini
        """,
        (LATER,),
    ),
    Mutation(
        "start: OpenSSL is imported with the first named content",
        "actors/core/values/identity.py:re",
        "import re",
        """
        import hashlib
        import re
        """,
        (LATER,),
    ),
    Mutation(
        "start: the modules that open sessions are imported with the class of the runtime",
        "actors/runtime/session_access.py:SessionAccess.config",
        'config: "Config"',
        'config: "Config"\nfrom actors.runtime.opening import SessionOpener',
        (IMPORTED,),
    ),
    Mutation(
        "start: the logger imports the types that its annotations name",
        "actors/telemetry/logger.py:islice",
        "from itertools import islice, zip_longest",
        """
        from actors.core.stream_events.ask_events import AskResult
        from itertools import islice, zip_longest
        """,
        (IMPORTED,),
    ),
    Mutation(
        "start: the wordings of errors are imported with the first decoder",
        "actors/adapters/base.py:BytesIO",
        "from io import BytesIO",
        """
        import actors.adapters.classify
        from io import BytesIO
        """,
        (DECODERS,),
    ),
)
