"""Mutations of the handling of answers without content."""

from tests.teeth.mutations.mutation import Mutation

PURE = "tests/core/test_no_content.py"
TURN = "tests/core/test_turn.py"
SESSIONS = "tests/session/test_no_content.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "no content: reasoning alone is an answer",
        "actors/core/turn/answers.py:_is_content",
        "Text | Thinking",
        "Text",
        (PURE,),
    ),
    Mutation(
        "no content: the parts around a text are an answer without it",
        "actors/core/turn/answers.py:_is_content",
        'block.seal.kind != "mark"',
        "True",
        (PURE,),
    ),
    Mutation(
        "no content: text is searched for calls although no tool is declared",
        "actors/core/turn/answers.py:content_cut",
        "has_tools and holds_call(text)",
        "holds_call(text)",
        (PURE,),
    ),
    Mutation(
        "no content: a requested token is not an answer",
        "actors/core/turn/answers.py:content_cut",
        "if has_tools:\n    said = without_tokens(said)",
        "said = without_tokens(said)",
        (PURE,),
    ),
    Mutation(
        "no content: an example in a code block is a call",
        "actors/core/turn/answers.py:holds_call",
        '_FENCED.sub("\\n", text)',
        "text",
        (PURE,),
    ),
    Mutation(
        "no content: inline code hides the text of later lines",
        "actors/core/turn/answers.py:_without_inline_code",
        'closing is not None and text.find("\\n", end, runs[closing][0]) < 0',
        "closing is not None",
        (PURE,),
    ),
    Mutation(
        "no content: a token in quotes is a call",
        "actors/core/turn/answers.py:holds_call",
        "any(not _is_quoted(prose, found) for found in _CALL.finditer(prose))",
        "_CALL.search(prose) is not None",
        (PURE,),
    ),
    Mutation(
        "no content: an answer is requested endlessly",
        "actors/core/turn/turn.py:_TurnRules._after_empty_answer",
        "self._is_lacking = True",
        "pass",
        (TURN,),
    ),
    Mutation(
        "no content: an answer with calls does not reset the count",
        "actors/core/turn/turn.py:_TurnRules._after_answer",
        "self._is_lacking = False",
        "pass",
        (TURN,),
    ),
    Mutation(
        "no content: after tool results the same request is sent again",
        "actors/core/turn/turn.py:_TurnRules._next_round",
        "self._has_called = True",
        "pass",
        (TURN, SESSIONS),
    ),
    Mutation(
        "no content: a value is read from a call written as text",
        "actors/core/turn/turn.py:_TurnRules._after_empty_answer",
        "is_unparsed and self._bounds.has_format",
        "False",
        (TURN, SESSIONS),
    ),
    Mutation(
        "no content: no other backend is tried after two empty answers",
        "actors/core/turn/turn.py:_TurnRules._after_empty_answer",
        'self._close("failed", ..., can_fail_over=True)',
        'self._close("failed", ...)',
        (TURN,),
    ),
    Mutation(
        "no content: the history keeps an empty answer",
        "actors/session/steps.py:TurnSteps._answer_message",
        "Message(message.role, (), message.turn, message.origin) if is_empty else message",
        "message",
        (SESSIONS,),
    ),
    Mutation(
        "no content: a forced tool is not forced again",
        "actors/session/steps.py:TurnSteps._answer_message",
        'self._has_answered |= self._ask.tally.cut not in ("empty", "unparsed")',
        "self._has_answered = True",
        (f"{SESSIONS}::test_a_tool_choice_is_forced_again_after_an_empty_answer",),
    ),
    Mutation(
        "turn: a repeated request counts the previous round's handoff",
        "actors/core/turn/turn.py:_TurnRules._next_round",
        "replace(self.render_step(), follows_batch=True)",
        "self.render()",
        ("tests/core/test_turn.py",),
    ),
    Mutation(
        "no content: an empty answer repeats the handoff",
        "actors/session/driver.py:TurnDriver._after_batch",
        "isinstance(step, steps.RenderStep) and step.follows_batch",
        "isinstance(step, steps.RenderStep) and step.round > 1",
        (f"{SESSIONS}::test_an_empty_answer_after_a_handoff_does_not_hand_off_again",),
    ),
    Mutation(
        "no content: a repeated request is missing from the attempts",
        "actors/session/steps.py:TurnSteps._render",
        "if step.repeat_reason: ...",
        "",
        (SESSIONS,),
    ),
    Mutation(
        "no content: a note for the model stands before its turn",
        "actors/session/inflight.py:AskInFlight.add_instruction",
        'Message("user", (Text(text),), state.turns)',
        'Message("user", (Text(text),))',
        (f"{SESSIONS}::test_tools_see_the_same_history_before_and_after_the_prompt_about_an_empty_answer",),
    ),
)
