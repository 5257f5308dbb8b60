"""Mutations of prompt caching requests."""

from tests.teeth.mutations.mutation import Mutation

WALKS = "tests/renderer/test_prompt_caches.py::test_random_conversations_read_nearly_the_ideal_number_of_cached_tokens"
SESSION = "tests/renderer/test_prompt_caches.py::test_a_session_reads_its_earlier_requests_from_the_cache"
PLACES = "tests/adapters/test_marks.py::test_the_tools_the_system_prompt_and_the_last_two_requests_end_with_cache_marks"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "caches: the end of the previous request is not marked",
        "actors/adapters/writing.py:add_marks",
        "0 < facts.before < end",
        "False",
        (PLACES,),
    ),
    Mutation(
        "caches: the end of a request is not marked",
        "actors/adapters/writing.py:add_marks",
        "[end] if end > 0 and (not dialect.caching.moving) else []",
        "list[int]()",
        (WALKS,),
    ),
    Mutation(
        "caches: the mark of a request stays at the lane's first one",
        "actors/adapters/writing.py:add_marks",
        "[end] if end > 0 and (not dialect.caching.moving) else []",
        "[min(end, len(next(iter(segments))))]",
        (WALKS,),
    ),
    Mutation(
        "caches: the mark for the complete request is left out",
        "actors/adapters/writing.py:add_marks",
        '(wanted if dialect.caching.moving else b"", segments)',
        '(b"", segments)',
        (WALKS,),
    ),
    Mutation(
        "caches: the tool choice changes between requests of a turn",
        "actors/session/steps.py:TurnSteps._render",
        "self._tool_choice(tools_off=step.tools_off)",
        "self._tool_choice(tools_off=step.tools_off or step.round % 2 == 0)",
        (f"{SESSION}[asyncio-anthropic]",),
    ),
    Mutation(
        "caches: a tool loop without thinking stays open for a model with a budget",
        "actors/core/render/walk.py:RenderWalk._is_in_loop_without_thinking",
        "self._ends_unthinking_loops and self._loop.answered and (not self._loop.mixed) and ...",
        "False and self._loop.answered and (not self._loop.mixed) and ...",
        (
            "tests/adapters/test_settings.py::test_filler_messages_close_a_tool_loop_without_thinking_only_once",
        ),
    ),
    Mutation(
        "caches: a lane has a new name for each request",
        "actors/provider/backend.py:ResolvedBackend.request",
        "lane_key(session, self.binding)",
        'lane_key(f"{session}{rendered._before}", self.binding)',
        (
            f"{SESSION}[asyncio-openai_chat]",
            "tests/renderer/test_prompt_caches.py::test_each_lane_keeps_its_own_cache_key",
        ),
    ),
    Mutation(
        "caches: a longer lifetime is requested and its loss is not reported",
        "actors/adapters/settings.py:fit_settings",
        'settings.cache == "long" != cache',
        "False",
        ("tests/adapters/test_marks.py::test_a_longer_cache_lifetime_is_requested_where_supported",),
    ),
    Mutation(
        "judge: a fifth mark passes",
        "actors/core/check/state.py:CheckState.check_end",
        "self.mark_count > _MARKS",
        "self.mark_count > _MARKS + 1",
        ("tests/core/test_check_marks.py",),
    ),
    Mutation(
        "judge: the mark of the complete request does not count",
        "actors/core/check/anthropic.py:Anthropic.check_end",
        "self.request_mark is not None",
        "False",
        ("tests/core/test_check_marks.py",),
    ),
)
