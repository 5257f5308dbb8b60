"""Mutations of scripted answers and of the servers that play them."""

from tests.teeth.mutations.mutation import Mutation

HERE = "tests/testing/test_offline.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "offline: each of several adjacent calls is a separate answer",
        "actors/testing/offline_runtime.py:group_answers",
        "pending and isinstance(pending[-1], Call) and not isinstance(part, Call)",
        "pending and isinstance(pending[-1], Call)",
        (f"{HERE}::test_a_scripted_answer_ends_with_text_or_the_last_of_adjacent_calls",),
    ),
    Mutation(
        "offline: two models of a provider share a script",
        "actors/testing/offline_runtime.py:_LoopbackTransport.send",
        "url.startswith(backend.endpoint) and _requests_model(*...)",
        "url.startswith(backend.endpoint)",
        (f"{HERE}::test_the_offline_mode_serves_several_models_of_one_provider_and_a_second_provider",),
    ),
)
