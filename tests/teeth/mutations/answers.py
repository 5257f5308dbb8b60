"""Mutations of the assembly of answers from fragments."""

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
        "answers: a placeholder counts as an id",
        "actors/adapters/calls.py:_PLACEHOLDERS",
        'frozenset({"null", "none", "undefined", "nil"})',
        "frozenset()",
        (CALLS,),
    ),
    Mutation(
        "answers: a textual index is ignored",
        "actors/adapters/calls.py:slot_of",
        "isinstance(index, str) and (word := index.strip())",
        "not isinstance(index, str) and (word := str(index))",
        (CALLS,),
    ),
    Mutation(
        "answers: a new id starts a new call",
        "actors/adapters/calls.py:CallTable._continues_call",
        "not call.pieces.is_blank and (not _has_complete_arguments(call))",
        "False",
        (CALLS,),
    ),
    Mutation(
        "answers: a name is never split into pieces",
        "actors/adapters/calls.py:CallTable.extended_name",
        "not call.pieces.is_blank",
        "True",
        (REPORTED,),
    ),
    Mutation(
        "answers: a finished call that is repeated is a second call",
        "actors/adapters/settling.py:AnswerCalls._drop_copies",
        "same and _canonical_arguments(call) in map(_canonical_arguments, same)",
        "False",
        (REPORTED,),
    ),
    Mutation(
        "answers: the second of two calls with one id and different arguments is lost",
        "actors/adapters/settling.py:AnswerCalls._drop_copies",
        "same and _canonical_arguments(call) in map(_canonical_arguments, same)",
        "same",
        ("tests/adapters/test_anthropic_decode.py",),
    ),
    Mutation(
        "answers: an empty object before the arguments makes them invalid",
        "actors/adapters/settling.py:_strip_empty_objects",
        '_EMPTY_IN_FRONT.sub("", text)',
        "text",
        (REPORTED,),
    ),
    Mutation(
        "answers: a fragment that belongs to no call makes no call doubtful",
        "actors/adapters/settling.py:AnswerCalls._drop_doubtful_calls",
        "call.is_guessed",
        "False",
        (ASTRAY,),
    ),
    Mutation(
        "answers: a call without arguments is trusted beside malformed arguments",
        "actors/adapters/settling.py:AnswerCalls._has_odd_arguments",
        "any(...)",
        "False",
        (ASTRAY,),
    ),
    Mutation(
        "answers: fragments of nameless calls are one call whatever their index",
        "actors/adapters/calls.py:CallTable._call_without_name",
        "slot not in (None, call.slot)",
        "False",
        (ASTRAY,),
    ),
    Mutation(
        "answers: arguments of an unexpected type are ignored",
        "actors/adapters/wire.py:argument_text",
        "json_text(value) if value else ''",
        "''",
        (ASTRAY,),
    ),
    Mutation(
        "answers: an empty final object replaces the arguments",
        "actors/adapters/assembly.py:MessageBuilder.complete_text",
        "('', '{}')",
        "('',)",
        (ASTRAY,),
    ),
    Mutation(
        "answers, responses: a second item with an id is merged into the first",
        "actors/adapters/responses/decode.py:ResponsesDecoder._process_start",
        "item is None or item.done",
        "item is None",
        (ASTRAY,),
    ),
    Mutation(
        "answers, anthropic: a call in message_start without further events is lost",
        "actors/adapters/anthropic/decode.py:MessagesDecoder._end_message",
        "self._add_calls_without_events()",
        "pass",
        (ASTRAY,),
    ),
    Mutation(
        "answers, openai_chat: a complete message in a stream is not read",
        "actors/adapters/openai_chat/decode.py:ChatDecoder.process_event",
        'choice.get("delta") or self._unsent_fields(choice)',
        'choice.get("delta")',
        (ASTRAY,),
    ),
    Mutation(
        "answers: cumulative arguments are malformed",
        "actors/adapters/settling.py:_complete_last_piece",
        "later.startswith(earlier)",
        "later == earlier",
        (REPORTED,),
    ),
    Mutation(
        "answers: arguments without a call are lost without a mark",
        "actors/adapters/assembly.py:MessageBuilder._settle_calls",
        "self._is_lost or answered.is_lost",
        "False",
        ("tests/adapters/test_anthropic_decode.py", DISTORTED),
    ),
    Mutation(
        "answers: a call without arguments runs although the answer ended abnormally",
        "actors/adapters/settling.py:AnswerCalls.settle_calls",
        "self.is_lost or not has_regular_end",
        "False",
        ("tests/adapters/test_lost_arguments.py",),
    ),
    Mutation(
        "answers, responses: the start of an item overrides its name",
        "actors/adapters/responses/decode.py:ResponsesDecoder._complete_item",
        "self.identify_call(*..., _tool_name_of(wire_item, part.namespace), is_final=True)",
        "self.identify_call(*..., _tool_name_of(wire_item, part.namespace))",
        (REPORTED,),
    ),
    Mutation(
        "answers, responses: the content of the last event is not read",
        "actors/adapters/responses/decode.py:ResponsesDecoder._process_end",
        'self._merge_output(as_array(response.get("output")))',
        "pass",
        (REPORTED, RESPONSES),
    ),
    Mutation(
        "answers, anthropic: the blocks of message_start are not read",
        "actors/adapters/anthropic/decode.py:MessagesDecoder._begin_message",
        'as_array(message.get("content"))',
        "()",
        (REPORTED,),
    ),
    Mutation(
        "answers: an unknown stop reason is a normal end",
        "actors/adapters/finish_reasons.py:cut_from_finish_reason",
        '"unknown"',
        "None",
        (REASONS,),
    ),
    Mutation(
        "answers: a normal stop reason hides a cut",
        "actors/adapters/assembly.py:MessageBuilder.record_finish_reason",
        "self.finish_reason and cut_from_finish_reason(self.finish_reason) and (not cut_from_finish_reason(reason))",
        "False",
        (REASONS,),
    ),
    Mutation(
        "answers, gemini: a paused answer is not continued",
        "actors/provider/rounds.py:Round._send_once",
        "failure is None and (token := self._decoder.end_response())",
        "False and (token := self._decoder.end_response())",
        (PAUSES,),
    ),
    Mutation(
        "answers, gemini: a paused answer is continued forever",
        "actors/provider/rounds.py:Round._send_once",
        "self._continued == CONTINUATIONS",
        "self._continued == CONTINUATIONS + 1",
        (PAUSES,),
    ),
    Mutation(
        "answers, gemini: only the last request of a paused answer is counted",
        "actors/adapters/base.py:Decoder.resume",
        "self._figures.begin_response(self.usage)",
        "self._figures.discard()",
        (PAUSES,),
    ),
    Mutation(
        "documents: a slice may end inside a character",
        "actors/adapters/document.py:LongText._cut_position",
        "self._document[end] & 192 == 128",
        "0",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: a slice may end inside an escape",
        "actors/adapters/document.py:LongText._cut_position",
        "slash + (_ESCAPE if is_long else 2) > end",
        "False",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: a pair of backslashes is half an escape",
        "actors/adapters/document.py:LongText._cut_position",
        "slash < 0 or _count_backslashes(self._document, begin, slash + 1) % 2 == 0",
        "slash < 0",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: an escaped quote ends a long text",
        "actors/adapters/document.py:_mask_escaped_quotes",
        "....replace(b'\\\\\"', b'__')",
        "...",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: a long key is taken for a text",
        "actors/adapters/document.py:_long_strings",
        "_is_ascii_only(data[begin:end]) or _KEY.match(data, end + 1)",
        "_is_ascii_only(data[begin:end])",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: a non-ASCII escape is counted as narrow",
        "actors/adapters/document.py:_is_ascii_only",
        'text.isascii() and b"\\\\u" not in text',
        "text.isascii()",
        (DOCUMENT,),
    ),
    Mutation(
        "documents: the texts of a body are read as one string",
        "actors/adapters/openai_chat/decode.py:ChatDecoder._process_content",
        "as_long_string(content)",
        "as_string(content)",
        (MEMORY,),
    ),
    Mutation(
        "documents: the deltas of a long text are stored beside it",
        "actors/adapters/base.py:Decoder.close",
        "self.take_events_lazily()",
        "self.take_events()",
        (MEMORY,),
    ),
)
