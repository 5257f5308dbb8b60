"""Mutations of the testing tools for users, and of the wheel."""

from tests.teeth.mutations.mutation import Mutation

SIMULATION = "tests/commands/test_simulation.py"

KEYS = (
    "tests/strict/test_by_name.py"
    "::test_every_strict_server_rejects_requests_without_its_key_and_keeps_its_options"
)

SHAPES = "tests/strict/test_shapes.py::test_the_first_fault_of_a_value_is_reported"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "shipped: a simulation shows no events to its observer",
        "actors/testing/simulation/observer.py:SimulatedJournal.append",
        "self._observer.on_event(entry.session, event)",
        "pass",
        (f"{SIMULATION}::test_an_observer_sees_each_event_before_it_is_in_the_log",),
    ),
    Mutation(
        "shipped: a simulation does not finish its observer",
        "actors/testing/simulation/__init__.py:play_in_world",
        "await world.observer.finish(runtime)",
        "pass",
        (f"{SIMULATION}::test_an_observer_sees_each_event_before_it_is_in_the_log",),
    ),
    Mutation(
        "shipped: a strict server accepts every bearer token",
        "actors/strict/server.py:LoopbackServer._credential_refusal",
        "is_same_key(bearer_token(request), self.api_key)",
        "bearer_token(request)",
        (KEYS,),
    ),
    Mutation(
        "shipped: a cloud lists Claude models in Anthropic's format",
        "actors/strict/anthropic_server.py:HostedClaudeServer._stored_resource",
        "return None",
        "return super()._stored_resource(request)",
        ("tests/strict/test_by_name.py::test_only_the_anthropic_server_lists_models_in_anthropics_format",),
    ),
    Mutation(
        "shipped: a strict server ignores its mode",
        "actors/strict/server.py:LoopbackServer.__init__",
        "self.mode: Mode = mode",
        'self.mode: Mode = "strict"',
        (KEYS,),
    ),
    Mutation(
        "shipped: a shape accepts unknown keys",
        "actors/strict/rules/shapes.py:ShapeChecker._check_fields",
        'shape.closed == "first"',
        'shape.closed == "never"',
        (SHAPES,),
    ),
    Mutation(
        "shipped: null does not count as absent where a shape allows it",
        "actors/strict/rules/shapes.py:ShapeChecker._check_field",
        "key not in value or (shape.null and value[key] is None)",
        "key not in value",
        (SHAPES,),
    ),
    Mutation(
        "shipped: true is a JSON integer",
        "actors/strict/rules/shapes.py:ShapeChecker.require_type",
        "expected_type is int and isinstance(value, bool)",
        "False",
        (SHAPES,),
    ),
    Mutation(
        "shipped: a simulation needs this repository's tests",
        "actors/testing/simulation/observer.py:MAX_LINES",
        "MAX_LINES = 100",
        """
        import pytest
        MAX_LINES = 100
        """,
        ("tests/project/test_packaging.py::test_no_installed_module_needs_a_test_tool",),
    ),
    Mutation(
        "shipped: a simulated rewind may name a removed turn",
        "actors/testing/simulation/observer.py:SimulatedJournal._track_event",
        "turn <= last",
        "turn",
        (f"{SIMULATION}::test_the_simulated_journal_finds_ended_turns_and_the_session_of_a_task",),
    ),
)
