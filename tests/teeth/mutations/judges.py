"""Mutations of answer schemas as sent, and of the hosts' rules for them."""

from tests.teeth.mutations.mutation import Mutation

FORMS = "tests/session/test_output_types.py"
ANSWERS = "tests/strict/test_answers.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "output: an answer schema in a Bedrock request is an object",
        "actors/adapters/converse.py:_text_format",
        '{**..., "schema": schema.decode()}',
        '{**..., "schema": schema}',
        ("tests/adapters/test_converse_encode.py", "tests/session/test_output.py"),
    ),
    Mutation(
        "output: every model on Bedrock accepts an answer schema",
        "actors/core/dialects/profiles.py:BEDROCK",
        'replace(_CLAUDE_LIKE, named_choice=False, cache="none", **...)',
        'replace(_CLAUDE_LIKE, named_choice=False, cache="none", schema_output=True, **...)',
        ("tests/adapters/test_converse_encode.py", "tests/session/test_output.py"),
    ),
    Mutation(
        "closed: keywords beside a reference are lost",
        "actors/adapters/schemas/closed.py:_SchemaCloser._close_reference",
        '{"$ref": schema["$ref"], **...}',
        "{**schema, **...}",
        (FORMS,),
    ),
    Mutation(
        "closed: a member that may not be null is required",
        "actors/adapters/schemas/closed.py:_SchemaCloser._close_object",
        "not all((_accepts_no_value(properties[name], self._root) for name in left_out))",
        "False",
        (FORMS,),
    ),
    Mutation(
        "closed: an object without members is closed",
        "actors/adapters/schemas/closed.py:_SchemaCloser._close_object",
        "schema.get(*..., not properties)",
        "schema.get(*..., False)",
        (FORMS,),
    ),
    Mutation(
        "closed: a choice of exactly one is sent in a different form",
        "actors/adapters/schemas/closed.py:_SchemaCloser.schema",
        '"oneOf" in given',
        "False",
        (FORMS,),
    ),
    Mutation(
        "closed: objects with equal beginnings have no discriminator",
        "actors/adapters/schemas/closed.py:_are_distinct",
        "all(values_per_object) and len(set(every)) == len(every)",
        "True",
        (FORMS,),
    ),
    Mutation(
        "output: a recursive schema is compiled",
        "actors/adapters/outputs.py:_is_expressible",
        "made is None or (size := measure_schema(made)).is_recursive",
        "made is None or (size := measure_schema(made)) is None",
        (FORMS,),
    ),
    Mutation(
        "output: more optional members than allowed are compiled",
        "actors/adapters/outputs.py:_is_expressible",
        "size.optional <= _MAX_OPTIONAL and size.unions <= _MAX_UNIONS",
        "size.unions <= _MAX_UNIONS",
        (FORMS,),
    ),
    Mutation(
        "output: a schema without a type is strict",
        "actors/adapters/outputs.py:_is_strict",
        "is_small and is_short and (size.indistinct_choices == 0) and (size.untyped_schemas == 0)",
        "is_small and is_short and (size.indistinct_choices == 0)",
        (FORMS,),
    ),
    Mutation(
        "output: an unanchored pattern is sent as a grammar",
        "actors/adapters/outputs.py:_is_anchored",
        'key != "pattern" or not is_open',
        "True",
        (FORMS,),
    ),
    Mutation(
        "servers: a strict schema may omit a member",
        "actors/strict/rules/schemas.py:_object_faults",
        "name not in names",
        "False",
        (ANSWERS,),
    ),
    Mutation(
        "servers: keywords may stand beside a reference",
        "actors/strict/rules/schemas.py:_reference_faults",
        """
        if beside:
            ...
        else:
            ...
        """,
        """
        if not beside and False:
            ...
        else:
            ...
        """,
        (ANSWERS,),
    ),
    Mutation(
        "servers: an Anthropic schema may be open",
        "actors/strict/rules/anthropic_shapes.py:_check_node",
        "... is not False",
        "... is True",
        (ANSWERS,),
    ),
    Mutation(
        "servers: a schema may stand beside tools at Google",
        "actors/strict/rules/gemini.py:_check_generation",
        "media_type == _JSON and tool_names and (not profile.json_beside_tools)",
        "False",
        (ANSWERS,),
    ),
    Mutation(
        "servers: JSON may be requested without the word JSON",
        "actors/strict/rules/openai_chat.py:_mentions_json",
        'any(("json" in text.lower() for _, text in strings_inside(messages)))',
        "True",
        (ANSWERS,),
    ),
    Mutation(
        "unreachable: a TLS failure is reported as a generic fault",
        "actors/transport/dial.py:failure_reason",
        "isinstance(error, ssl.SSLError)",
        "False",
        ("tests/provider/test_unreachable.py",),
    ),
    Mutation(
        "unreachable: only system errors count as connection failures",
        "actors/transport/exchange.py:_failure_message",
        "isinstance(error, OSError)",
        "isinstance(error, ConnectionError)",
        ("tests/provider/test_unreachable.py",),
    ),
    Mutation(
        "asked: a model without sampling receives sampling settings",
        "actors/adapters/settings.py:_fit_fields",
        "setting.is_sampling and no_sampling",
        "False",
        ("tests/session/test_settings.py",),
    ),
    Mutation(
        "asked: two sampling settings are sent together",
        "actors/core/dialects/dialect.py:AnthropicRequest.top_p",
        'top_p: Literal["beside", "alone"] = "alone"',
        'top_p: Literal["beside", "alone"] = "beside"',
        ("tests/session/test_settings.py",),
    ),
    Mutation(
        "outside: an effort is sent where Converse has none",
        "actors/adapters/converse.py:request_head",
        '{"effort": settings.effort, **...}',
        '{"reasoning": settings.effort, **...}',
        ("tests/adapters/test_outside_judges.py",),
    ),
    Mutation(
        "outside: a Google answer schema has a different name",
        "actors/adapters/gemini.py:_output_fields",
        '{**..., "responseSchema": schema}',
        '{**..., "answerSchema": schema}',
        ("tests/adapters/test_outside_gemini.py",),
    ),
    Mutation(
        "outside: an answer format at Mistral has extra fields",
        "actors/adapters/outputs.py:named_schema",
        '{"name": NAME, "schema": made, "strict": True}',
        '{"name": NAME, "schema": made, "strict": True, "form": NAME}',
        ("tests/adapters/test_outside_judges_of_vendors.py",),
    ),
)
