"""Mistakes in how the fragments of an answer are put together."""

from tests.teeth.mutations.mutation import Mutation

CALLS = "tests/adapters/test_calls.py"
REPORTED = "tests/adapters/test_reported_streams.py"
DISTORTED = "tests/commands/test_distortions.py"
RESPONSES = "tests/adapters/test_responses_decode.py"
ASTRAY = "tests/adapters/test_arguments_that_go_astray.py"
PAUSES = "tests/provider/test_continuations.py"
REASONS = "tests/adapters/test_reasons_to_stop.py"
DOCUMENT = "tests/adapters/test_document.py"
MEMORY = "tests/adapters/test_memory.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "answers: a placeholder is an id",
        "actors/adapters/calls.py:_PLACEHOLDERS",
        'frozenset({"null", "none", "undefined", "nil"})',
        "frozenset()",
        (CALLS,),
    ),
    Mutation(
        "answers: an index that is text is none",
        "actors/adapters/calls.py:slot_of",
        "isinstance(index, str) and (word := index.strip())",
        "not isinstance(index, str) and (word := str(index))",
        (CALLS,),
    ),
    Mutation(
        "answers: a fresh id begins a call",
        "actors/adapters/calls.py:CallTable._goes_on",
        "not call.pieces.is_blank and (not _has_all(call))",
        "False",
        (CALLS,),
    ),
    Mutation(
        "answers: a name never comes in pieces",
        "actors/adapters/calls.py:CallTable.grown_name",
        "not call.pieces.is_blank",
        "True",
        (REPORTED,),
    ),
    Mutation(
        "answers: a finished call that is sent again is a second call",
        "actors/adapters/settling.py:AnswerCalls._drop_copies",
        "same and _arguments(call) in map(_arguments, same)",
        "False",
        (REPORTED,),
    ),
    Mutation(
        "answers: of two calls under one id with other arguments the second is gone",
        "actors/adapters/settling.py:AnswerCalls._drop_copies",
        "same and _arguments(call) in map(_arguments, same)",
        "same",
        ("tests/adapters/test_anthropic_decode.py",),
    ),
    Mutation(
        "answers: an empty object in front of the arguments spoils them",
        "actors/adapters/settling.py:_without_empty",
        '_EMPTY_IN_FRONT.sub("", text)',
        "text",
        (REPORTED,),
    ),
    Mutation(
        "answers: a fragment that fits no call makes no call doubtful",
        "actors/adapters/settling.py:AnswerCalls._drop_doubtful",
        "call.is_guessed",
        "False",
        (ASTRAY,),
    ),
    Mutation(
        "answers: a call without arguments is trusted beside arguments that are no object",
        "actors/adapters/settling.py:AnswerCalls._has_odd_arguments",
        "any(...)",
        "False",
        (ASTRAY,),
    ),
    Mutation(
        "answers: fragments of calls without a name are one call whatever their index",
        "actors/adapters/calls.py:CallTable._nameless_call",
        "slot not in (None, call.slot)",
        "False",
        (ASTRAY,),
    ),
    Mutation(
        "answers: arguments of another type are none",
        "actors/adapters/wire.py:argument_text",
        "json_text(value) if value else ''",
        "''",
        (ASTRAY,),
    ),
    Mutation(
        "answers: an empty final object overrides the arguments",
        "actors/adapters/assembly.py:MessageBuilder.complete",
        "('', '{}')",
        "('',)",
        (ASTRAY,),
    ),
    Mutation(
        "answers, responses: a second item under an id is the first",
        "actors/adapters/responses/decode.py:ResponsesDecoder._take_start",
        "item is None or item.done",
        "item is None",
        (ASTRAY,),
    ),
    Mutation(
        "answers, anthropic: a call of message_start that no event has is gone",
        "actors/adapters/anthropic/decode.py:MessagesDecoder._message_stop",
        "self._take_calls_without_events()",
        "pass",
        (ASTRAY,),
    ),
    Mutation(
        "answers, openai_chat: a message in a stream is not read",
        "actors/adapters/openai_chat/decode.py:ChatDecoder.event",
        'choice.get("delta") or self._rest_of_message(choice)',
        'choice.get("delta")',
        (ASTRAY,),
    ),
    Mutation(
        "answers: cumulative arguments are malformed",
        "actors/adapters/settling.py:_last_grown",
        "later.startswith(earlier)",
        "later == earlier",
        (REPORTED,),
    ),
    Mutation(
        "answers: arguments that belong to no call are gone without a mark",
        "actors/adapters/assembly.py:MessageBuilder._settle",
        "self._is_lost or answered.is_lost",
        "False",
        ("tests/adapters/test_anthropic_decode.py", DISTORTED),
    ),
    Mutation(
        "answers: a call without arguments runs although the answer did not end as it should",
        "actors/adapters/settling.py:AnswerCalls.settle",
        "self.is_lost or not is_proper",
        "False",
        ("tests/adapters/test_lost_arguments.py",),
    ),
    Mutation(
        "answers, responses: the start of an item has the last word on its name",
        "actors/adapters/responses/decode.py:ResponsesDecoder._take_whole",
        "self.identify(part, string(told.get('call_id')), _name_of(told, part.namespace), is_final=True)",
        "self.identify(part, string(told.get('call_id')), _name_of(told, part.namespace))",
        (REPORTED,),
    ),
    Mutation(
        "answers, responses: what the last event holds is not read",
        "actors/adapters/responses/decode.py:ResponsesDecoder._end_response",
        'self._merge(items(response.get("output")))',
        "pass",
        (REPORTED, RESPONSES),
    ),
    Mutation(
        "answers, anthropic: the blocks of message_start are not read",
        "actors/adapters/anthropic/decode.py:MessagesDecoder._message_start",
        'items(message.get("content"))',
        "()",
        (REPORTED,),
    ),
    Mutation(
        "answers: a reason to stop that nobody knows is a plain end",
        "actors/adapters/classify.py:cut_of_finish",
        '"unknown"',
        "None",
        (REASONS,),
    ),
    Mutation(
        "answers: a plain reason to stop makes up for a cut",
        "actors/adapters/assembly.py:MessageBuilder.finish",
        "self.finish_reason and cut_of_finish(self.finish_reason) and (not cut_of_finish(reason))",
        "False",
        (REASONS,),
    ),
    Mutation(
        "answers, gemini: a paused answer is not gone on with",
        "actors/provider/rounds.py:Round._attempt",
        "failure is None and (token := self._decoder.end_response())",
        "False and (token := self._decoder.end_response())",
        (PAUSES,),
    ),
    Mutation(
        "answers, gemini: a paused answer is gone on with for ever",
        "actors/provider/rounds.py:Round._attempt",
        "self._continued == CONTINUATIONS",
        "self._continued == CONTINUATIONS + 1",
        (PAUSES,),
    ),
    Mutation(
        "answers, gemini: of a paused answer only the last request is paid for",
        "actors/adapters/base.py:Decoder.resume",
        "self._usage_before, self._figures = (self.usage, {})",
        "self._figures = {}",
        (PAUSES,),
    ),
    Mutation(
        "documents: a slice ends inside a character",
        "actors/adapters/document.py:LongText._cut_position",
        "self._document[end] & 192 == 128",
        "0",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: a slice ends inside an escape",
        "actors/adapters/document.py:LongText._cut_position",
        "slash + (_ESCAPE if is_long else 2) > end",
        "False",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: a pair of backslashes is half an escape",
        "actors/adapters/document.py:LongText._cut_position",
        "slash < 0 or _backslashes(self._document, begin, slash + 1) % 2 == 0",
        "slash < 0",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: an escaped quote ends a long text",
        "actors/adapters/document.py:_without_escaped_quotes",
        "....replace(b'\\\\\"', b'__')",
        "...",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: a long key is taken for a text",
        "actors/adapters/document.py:_long_strings",
        "_is_narrow(data[begin:end]) or _KEY.match(data, end + 1)",
        "_is_narrow(data[begin:end])",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: an escape beyond ASCII is thought to be narrow",
        "actors/adapters/document.py:_is_narrow",
        'text.isascii() and b"\\\\u" not in text',
        "text.isascii()",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: the words of a body are read as one string",
        "actors/adapters/openai_chat/decode.py:ChatDecoder._content",
        "long_string(content)",
        "string(content)",
        (MEMORY,),
    ),
    Mutation(
        "documents: the deltas of a long text are kept beside it",
        "actors/adapters/base.py:Decoder.close",
        "self.take_lazily()",
        "self.take()",
        (MEMORY,),
    ),
)
