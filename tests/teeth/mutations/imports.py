"""Mutations of transcript import: reading, reports, and free-text tools."""

from tests.teeth.mutations.mutation import Mutation

UNREAD = "tests/adapters/test_left_unread.py"
CUSTOM = "tests/adapters/test_custom_tools.py"
FILES = "tests/cli/test_transcripts.py"
TRIPS = "tests/cli/test_round_trips.py"
SESSIONS = "tests/runtime/test_imported_sessions.py"
GUESSES = "tests/adapters/test_recognition.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "import: a message with an unread key counts as read",
        "actors/adapters/wire.py:WireObject.is_read",
        """
        if (opened := self._opened.get(key)) is None:
            return False
        """,
        """
        if (opened := self._opened.get(key)) is None:
            continue
        """,
        (UNREAD,),
    ),
    Mutation(
        "import: a message with an unread key in a nested object counts as read",
        "actors/adapters/wire.py:WireObject.is_read",
        "isinstance(item, WireObject) and not item.is_read()",
        "False",
        (UNREAD,),
    ),
    Mutation(
        "import: unread keys below a read key are not reported",
        "actors/adapters/wire.py:WireObject.unread_paths",
        "self._opened[key]",
        "self._opened[key][:0]",
        (UNREAD,),
    ),
    Mutation(
        "import: a value of an unexpected type counts as read",
        "actors/adapters/wire.py:WireObject.read_value",
        """
        if value is not None and isinstance(value, kind):
            self._taken.add(key)
            return value
        """,
        """
        self._taken.add(key)
        if value is not None and isinstance(value, kind):
            return value
        """,
        (UNREAD,),
    ),
    Mutation(
        "import: an empty message is dropped silently",
        "actors/adapters/reading.py:TranscriptReader.read",
        """
        if self._is_empty:
            ...
        """,
        """
        if self._is_empty and (not self._runs):
            ...
        """,
        (UNREAD,),
    ),
    Mutation(
        "import: every odd line is kept without a limit",
        "actors/core/values/intake.py:ReportBuilder.add",
        "len(lines) < LISTED",
        "len(lines) >= 0",
        (FILES,),
    ),
    Mutation(
        "import: a transcript in another dialect is read nevertheless",
        "actors/adapters/importing.py:recognise_dialect",
        """
        if unique_hints:
            ...
        """,
        """
        if False:
            ...
        """,
        (TRIPS,),
    ),
    Mutation(
        "import: a format is guessed although a message does not match it",
        "actors/adapters/importing.py:_guess_dialect",
        "at is None",
        "at is None or hint.is_unique",
        (GUESSES,),
    ),
    Mutation(
        "import: plain texts are read although a message has no role",
        "actors/adapters/formats.py:has_only_text",
        'not message.keys() <= _CHAT_KEYS or "role" not in message',
        "False",
        (GUESSES,),
    ),
    Mutation(
        "import: a part of another format is read as Gemini's",
        "actors/adapters/formats.py:_has_keys",
        "bool(part.keys() & kind_keys) and part.keys() <= kind_keys | extra_keys",
        "bool(part.keys() & kind_keys)",
        (GUESSES,),
    ),
    Mutation(
        "import: a provider's own tool becomes a client function",
        "actors/adapters/importing.py:_client_tools",
        'kind in ("", "function", "custom")',
        'kind != "namespace"',
        (FILES,),
    ),
    Mutation(
        "import: an assumed limit is not reported",
        "actors/adapters/anthropic/encode.py:request_head",
        "settings.max_tokens == most",
        "settings.max_tokens != most",
        (SESSIONS,),
    ),
    Mutation(
        "import: a session loses the report of its normalization",
        "actors/core/session/state.py:_initial_state",
        "replace(NO_MESSAGES, report=event.report, system=event.system)",
        "replace(NO_MESSAGES, system=event.system)",
        (SESSIONS,),
    ),
    Mutation(
        "free text: its result has the format of a function result",
        "actors/adapters/responses/encode.py:ResponsesWriter.write_result",
        "call_id in self._free",
        "not call_id",
        (CUSTOM,),
    ),
    Mutation(
        "free text: a host without free-text tools receives one",
        "actors/adapters/openai_chat/encode.py:OpenAIChatWriter.write_call",
        "self._has_custom_tools and (text := call.text) is not None",
        "(text := call.text) is not None",
        (CUSTOM,),
    ),
    Mutation(
        "free text: it counts as malformed arguments",
        "actors/core/values/content.py:ToolCall.is_malformed",
        "self.raw_json is not None",
        "self.raw is not None",
        (CUSTOM,),
    ),
    Mutation(
        "namespaces: a call is not sent back to its namespace",
        "actors/adapters/responses/encode.py:ResponsesWriter.write_call",
        """
        if call.namespace:
            ...
        """,
        """
        if call.namespace and (not name):
            ...
        """,
        (CUSTOM,),
    ),
)
