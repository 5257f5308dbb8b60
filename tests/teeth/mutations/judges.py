"""Mistakes in the schema of an answer as it is sent, and in what the hosts demand of it."""

from tests.teeth.mutations.mutation import Mutation

FORMS = "tests/asking/test_output_forms.py"
ANSWERS = "tests/testing/test_loopback_answers.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "closed: what stands beside a reference goes with it",
        "actors/adapters/closed_schemas.py",
        'return {"$ref": schema["$ref"], **definitions}',
        "return {**schema, **definitions}",
        (FORMS,),
    ),
    Mutation(
        "closed: a member that may not be null is demanded",
        "actors/adapters/closed_schemas.py",
        "if not all(_may_be_silent(properties[name], self._root) for name in left_out):",
        "if False:",
        (FORMS,),
    ),
    Mutation(
        "closed: an object without members is closed",
        "actors/adapters/closed_schemas.py",
        'schema.get("additionalProperties", not properties) is not False',
        'schema.get("additionalProperties", False) is not False',
        (FORMS,),
    ),
    Mutation(
        "closed: a choice of exactly one is not said as a choice",
        "actors/adapters/closed_schemas.py",
        'if "oneOf" in schema else schema',
        "if False else schema",
        (FORMS,),
    ),
    Mutation(
        "closed: objects that begin alike are told apart by no word",
        "actors/adapters/closed_schemas.py",
        "return all(told) and len(set(every)) == len(every)",
        "return True",
        (FORMS,),
    ),
    Mutation(
        "output: a schema that leads back to itself is compiled",
        "actors/adapters/outputs.py",
        "if made is None or (size := measured(made)).is_recursive:",
        "if made is None or (size := measured(made)) is None:",
        (FORMS,),
    ),
    Mutation(
        "output: more optional members than are compiled",
        "actors/adapters/outputs.py",
        "return size.optional <= _MAX_OPTIONAL and",
        "return",
        (FORMS,),
    ),
    Mutation(
        "output: a schema without a type is strict",
        "actors/adapters/outputs.py",
        "and size.alike == 0 and size.untyped == 0",
        "and size.alike == 0",
        (FORMS,),
    ),
    Mutation(
        "output: a pattern without ends goes to a grammar",
        "actors/adapters/outputs.py",
        'return key != "pattern" or not is_open',
        "return True",
        (FORMS,),
    ),
    Mutation(
        "servers: a strict schema may leave a member out",
        "actors/testing/rules/strict_schema.py",
        "        if name not in names:\n            yield",
        "        if False:\n            yield",
        (ANSWERS,),
    ),
    Mutation(
        "servers: words may stand beside a reference",
        "actors/testing/rules/strict_schema.py",
        "    if beside:\n",
        "    if not beside and False:\n",
        (ANSWERS,),
    ),
    Mutation(
        "servers: a schema of Anthropic's may be open",
        "actors/testing/rules/anthropic_schema.py",
        'if "object" in told and node.get("additionalProperties") is not False:',
        'if "object" in told and node.get("additionalProperties") is True:',
        (ANSWERS,),
    ),
    Mutation(
        "servers: a schema may stand beside tools at Google's",
        "actors/testing/rules/gemini.py",
        "if mime == _JSON and names and not profile.json_beside_tools:",
        "if False:",
        (ANSWERS,),
    ),
    Mutation(
        "servers: JSON may be asked for without the word",
        "actors/testing/rules/answers.py",
        'return any("json" in text.lower() for _, text in strings(messages))',
        "return True",
        (ANSWERS,),
    ),
    Mutation(
        "asked: a model that takes no sampling is sent some",
        "actors/adapters/settings.py",
        "takes = rules.sampling and re.fullmatch(rules.sampling_models, settings.model) is not None",
        "takes = rules.sampling",
        ("tests/asking/test_settings.py",),
    ),
    Mutation(
        "asked: of two samplings both are sent beside each other",
        "actors/core/dialect.py",
        'top_p: Literal["beside", "alone"] = "alone"',
        'top_p: Literal["beside", "alone"] = "beside"',
        ("tests/asking/test_settings.py",),
    ),
    Mutation(
        "outside: an effort stands where Converse has none",
        "actors/adapters/converse/encode.py",
        '"outputConfig": {"effort": settings.effort},',
        '"outputConfig": {"reasoning": settings.effort},',
        ("tests/test_outside_judges.py",),
    ),
    Mutation(
        "outside: a schema of the answer has another name at Google's",
        "actors/adapters/gemini/encode.py",
        'return {"responseMimeType": "application/json", "responseSchema": schema}',
        'return {"responseMimeType": "application/json", "answerSchema": schema}',
        ("tests/test_outside_gemini.py",),
    ),
    Mutation(
        "outside: a form of the answer says too much at Mistral's",
        "actors/adapters/outputs.py",
        'return {"name": NAME, "schema": made, "strict": True}',
        'return {"name": NAME, "schema": made, "strict": True, "form": NAME}',
        ("tests/test_outside_judges_of_vendors.py",),
    ),
)
