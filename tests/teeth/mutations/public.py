"""Mistakes in the public face: internal types in signatures, names without a home, fields without a description."""

from tests.teeth.mutations.mutation import Mutation

PUBLIC = "tests/project/test_public.py"
SIGNATURES = f"{PUBLIC}::test_every_type_in_a_public_signature_has_a_public_home_module"
HOMES = f"{PUBLIC}::test_every_public_name_has_one_home_module_and_one_meaning"
FIELDS = f"{PUBLIC}::test_every_field_of_a_public_class_is_documented"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "public: a property returns an internal class",
        "actors/runtime/session_access.py:SessionAccess.sessions",
        "OpenSessions",
        "SessionOpener",
        (SIGNATURES,),
    ),
    Mutation(
        "public: a method returns an internal class in a generic one",
        "actors/runtime/handle.py:Session.history",
        "History",
        "tuple[SessionState, ...]",
        (SIGNATURES,),
    ),
    Mutation(
        "public: an alias names an internal class",
        "actors/core/turn/batch.py:Approve",
        "ToolCall",
        "'RunnableCall'",
        (SIGNATURES,),
    ),
    Mutation(
        "public: an attribute of unknown type",
        "actors/runtime/runtime.py:Runtime.__init__",
        "self._registry = registry.SessionRegistry()",
        "self.registry = registry.SessionRegistry()",
        (SIGNATURES,),
    ),
    Mutation(
        "public: a name has two homes",
        "actors/transcripts.py:__all__",
        '["AnswerDecoder", *...]',
        '["AnswerDecoder", "Message", *...]',
        (HOMES,),
    ),
    Mutation(
        "public: a field without a description",
        "actors/core/turn/batch.py:BoundArguments",
        "kwargs: Mapping[str, Any]",
        "kwargs: Mapping[str, Any]\nbare: bool = False",
        (FIELDS,),
    ),
)
