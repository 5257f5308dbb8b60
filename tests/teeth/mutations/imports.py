"""Mistakes where transcripts of others come in: what is read, what is named, and free texts of tools."""

from tests.teeth.mutations.mutation import Mutation

UNREAD = "tests/adapters/test_left_unread.py"
CUSTOM = "tests/adapters/test_custom_tools.py"
FILES = "tests/cli/test_transcripts.py"
TRIPS = "tests/cli/test_round_trips.py"
SESSIONS = "tests/test_imported_sessions.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "import: what is unread below a key that was read is not named",
        "actors/adapters/wire_object.py",
        "            for item in self._opened[key]:\n",
        "            for item in self._opened[key][:0]:\n",
        (UNREAD,),
    ),
    Mutation(
        "import: a value of another type than its reader wants counts as read",
        "actors/adapters/wire_object.py",
        "            if value is not None and isinstance(value, kind):\n                self._taken.add(key)\n",
        "            self._taken.add(key)\n            if value is not None and isinstance(value, kind):\n",
        (UNREAD,),
    ),
    Mutation(
        "import: a message that says nothing goes without a word",
        "actors/adapters/reading.py",
        "            if self._silent:\n",
        "            if self._silent and not self._runs:\n",
        (UNREAD,),
    ),
    Mutation(
        "import: every odd line is kept, however many there are",
        "actors/core/intake.py",
        "if len(lines) < LISTED and",
        "if len(lines) >= 0 and",
        (FILES,),
    ),
    Mutation(
        "import: a transcript of another dialect is read all the same",
        "actors/adapters/importing.py",
        "        if plain and named.family not in plain:\n",
        "        if plain and not plain:\n",
        (TRIPS,),
    ),
    Mutation(
        "import: a provider's own tool becomes a function of the client",
        "actors/adapters/declared.py",
        'elif kind in ("", "function", "custom"):',
        'elif kind != "namespace":',
        (FILES,),
    ),
    Mutation(
        "import: an assumed limit is not told",
        "actors/adapters/anthropic/encode.py",
        "assumed = () if settings.max_tokens == most else",
        "assumed = () if settings.max_tokens != most else",
        (SESSIONS,),
    ),
    Mutation(
        "import: a session forgets what its door found",
        "actors/core/state.py",
        "replace(NO_MESSAGES, report=event.report, system=event.system)",
        "replace(NO_MESSAGES, system=event.system)",
        (SESSIONS,),
    ),
    Mutation(
        "free text: its result is that of a function",
        "actors/adapters/responses/encode.py",
        "if call_id in self._free:",
        "if not call_id:",
        (CUSTOM,),
    ),
    Mutation(
        "free text: a host without such tools is sent it as one",
        "actors/adapters/openai_chat/encode.py",
        "if self._custom and (text := call.text) is not None:",
        "if (text := call.text) is not None:",
        (CUSTOM,),
    ),
    Mutation(
        "free text: it counts as malformed arguments",
        "actors/core/content.py",
        "return self.raw is not None and self.text is None",
        "return self.raw is not None",
        (CUSTOM,),
    ),
    Mutation(
        "namespaces: a call does not go back to its own",
        "actors/adapters/responses/encode.py",
        "        if call.namespace:\n",
        "        if call.namespace and not name:\n",
        (CUSTOM,),
    ),
)
