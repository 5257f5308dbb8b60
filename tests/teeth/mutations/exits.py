"""Mutations at the edges: unexpected exits and cancellations."""

from tests.teeth.mutations.mutation import Mutation

FROM_THREADS = "tests/scheduler/test_from_threads.py"
EXITS = (
    f"{FROM_THREADS}::test_an_exit_exception_in_a_function_that_a_tool_runs_on_the_loop_fails_only_the_call"
)
HANDLES = "tests/runtime/test_get_or_create.py"
LARGE = "tests/adapters/test_large_events.py"

MUTATIONS = (
    Mutation(
        "edges: an exit exception in code that a tool thread runs in the loop ends the loop",
        "actors/scheduler/in_threads.py:_enter_loop",
        "backend = _exit_safe_backend(token.backend_class)",
        "backend = token.backend_class",
        (EXITS,),
    ),
    Mutation(
        "edges: a tool's thread appears to run an event loop",
        "actors/scheduler/in_threads.py:run_in",
        "context.run(_eventloop.set_current_async_library, None)",
        "",
        (f"{FROM_THREADS}::test_a_blocking_tool_may_run_its_own_event_loop",),
    ),
    Mutation(
        "edges: a timeout hides the failure that was retried",
        "actors/provider/advice.py:_pending_retry",
        "failed.status == 'retried' and last.wait",
        "False",
        ("tests/provider/test_advice.py::test_a_timeout_during_retries_names_the_retried_failure",),
    ),
    Mutation(
        "edges: the version is printed on standard error",
        "actors/cli/parser.py:_Version.__call__",
        "print(f\"actors {version('llm-actors')}\")\nparser.exit()",
        "parser.exit(0, f\"actors {version('llm-actors')}\\n\")",
        ("tests/cli/test_command_line.py::test_the_version_is_printed_on_standard_output",),
    ),
    Mutation(
        "edges: a host full of unreferenced sessions accepts no other",
        "actors/runtime/registry.py:SessionRegistry.ensure_room",
        "not host.residency.release_one()",
        "True",
        (f"{HANDLES}::test_a_released_session_makes_room_for_another_session",),
    ),
    Mutation(
        "edges: a referenced session is evicted",
        "actors/runtime/lifecycle.py:SessionLifecycle.end_if_unused",
        "self.handles",
        "False",
        (f"{HANDLES}::test_a_released_session_makes_room_for_another_session",),
    ),
    Mutation(
        "edges: a session being read is evicted",
        "actors/runtime/lifecycle.py:SessionLifecycle.end_if_unused",
        "self.name in self.host.readers.subscribers",
        "False",
        (f"{HANDLES}::test_a_waiting_or_subscribed_session_is_never_closed_to_make_room",),
    ),
    Mutation(
        "edges: a waiting session is evicted",
        "actors/runtime/lifecycle.py:SessionLifecycle.end_if_unused",
        "self.pending_calls",
        "False",
        (f"{HANDLES}::test_a_waiting_or_subscribed_session_is_never_closed_to_make_room",),
    ),
    Mutation(
        "edges: a session's metadata cannot be copied",
        "actors/core/settings/labels.py:FrozenMetadata.__init__",
        "self._values = dict(metadata)",
        "self._values = __import__('types').MappingProxyType(dict(metadata))",
        ("tests/project/test_pickling.py::test_every_public_value_survives_pickling_and_copying",),
    ),
    Mutation(
        "edges: a stream that cannot start has a success status",
        "docs/examples/with_uvicorn/conversations.py:after_first_piece",
        """
        try:
            first = await anext(pieces)
        except StopAsyncIteration:
            return pieces
        """,
        """
        first = None
        return pieces
        """,
        ("tests/journeys/test_web_servers.py",),
    ),
    Mutation(
        "edges: underscores are allowed in numbers of headers",
        "actors/adapters/retry_after.py:parse_number",
        "isnan(read) or '_' in value",
        "isnan(read)",
        ("tests/adapters/test_times.py::test_an_invalid_retry_or_reset_time_is_ignored",),
    ),
    Mutation(
        "edges: a NO_PROXY entry with a final dot matches no host",
        "actors/transport/dial.py:_matches_host",
        "entry.removeprefix('*').strip('.')",
        "entry.removeprefix('*').removeprefix('.')",
        ("tests/transport/test_proxy.py::test_hosts_in_no_proxy_are_reached_without_the_proxy",),
    ),
    Mutation(
        "edges: data kept by an outage is never removed",
        "actors/runtime/retention.py:vacuum",
        "RemainingData('the journal', str(error), is_temporary=True)",
        "RemainingData('the journal', str(error))",
        ("tests/journal/test_sweeps.py::test_data_left_by_an_outage_is_removed_the_next_day",),
    ),
    Mutation(
        "edges: a failed sweep forgets its deletions",
        "actors/runtime/retention.py:Retention._delete_expired",
        "self._is_vacuum_due |= bool(deleted)",
        "self._is_vacuum_due |= False",
        ("tests/journal/test_sweeps.py::test_a_failed_batch_leaves_no_data_of_earlier_batches",),
    ),
    Mutation(
        "large events: a document may contain any number of values",
        "actors/adapters/document.py:_check_value_count",
        "raise TooManyValues",
        "return",
        (f"{LARGE}::test_a_json_document_with_too_many_values_is_rejected",),
    ),
    Mutation(
        "large events: a document may contain any number of quotes",
        "actors/adapters/document.py:_quote_positions",
        "raise TooManyValues",
        "pass",
        (f"{LARGE}::test_a_json_document_with_too_many_values_is_rejected",),
    ),
    Mutation(
        "large events: commas in a text separate values",
        "actors/adapters/document.py:_check_value_count",
        "_count_separators(b''.join(...))",
        "_count_separators(part)",
        (f"{LARGE}::test_a_string_of_brackets_and_commas_counts_as_one_json_value",),
    ),
    Mutation(
        "large events: a last event with too many values is the start of one",
        "actors/adapters/base.py:_is_complete",
        "return True",
        "return False",
        (f"{LARGE}::test_a_json_document_with_too_many_values_is_rejected",),
    ),
    Mutation(
        "events: an event may have any number of lines",
        "actors/adapters/framing.py:EventParser._process_line",
        "len(self._data) == MAX_LINES",
        "False",
        ("tests/adapters/test_sse.py::test_the_number_of_data_lines_of_an_event_is_bounded",),
    ),
    Mutation(
        "events: a byte order mark before an unfinished line is part of its field",
        "actors/adapters/framing.py:EventParser.feed",
        "del self._begun[:len(_BYTE_ORDER_MARK)]",
        "pass",
        ("tests/adapters/test_sse.py::test_a_byte_order_mark_may_precede_a_large_data_line",),
    ),
)
