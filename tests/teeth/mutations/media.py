"""Mutations of the hosts' limits for tool schemas and images."""

from tests.teeth.mutations.mutation import Mutation

KEYS = "tests/adapters/test_property_keys.py"
HEADERS = "tests/core/test_image_header.py"
LIMITS = "tests/core/test_image_limits.py"
REFUSED = "tests/provider/test_refused_schemas.py"

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "keys: two generated keys may be equal",
        "actors/adapters/schemas/host.py:_new_keys",
        "(made := property_key(own, pattern, probe)) in owned or made in keys",
        "(made := property_key(own, pattern, probe)) in keys",
        (KEYS,),
    ),
    Mutation(
        "keys: a reference does not follow its renamed key",
        "actors/adapters/schemas/host.py:_KeyRenamer.value",
        "return self._rename_reference(value)",
        "return value",
        (KEYS,),
    ),
    Mutation(
        "keys: a call is sent back with the tool's own keys",
        "actors/core/render/walk.py:RenderWalk._write_blocks",
        "self._projection.with_native_keys(call)",
        "call",
        (KEYS,),
    ),
    Mutation(
        "keys: every provider sees the keys for another",
        "actors/core/transcript/transcript.py:Projection.with_native_keys",
        "self._provider_key(seal.origin) != self._home",
        "False",
        (KEYS,),
    ),
    Mutation(
        "keys: a call that names a key twice loses one",
        "actors/adapters/partial.py:PartialCall._with_own_keys",
        "own != json and parse_object(own.decode()) is None",
        "False",
        (KEYS,),
    ),
    Mutation(
        "patterns: an escaped parenthesis starts a lookaround",
        "actors/adapters/schemas/host.py:_SchemaPruner._accepts_pattern",
        '_ESCAPES.sub("", pattern)',
        "pattern",
        (KEYS,),
    ),
    Mutation(
        "media: the declared type of media is trusted",
        "actors/core/values/content.py:Media.__new__",
        "detect_media_type(media_type, data) if has_bytes else media_type",
        "media_type",
        (HEADERS, LIMITS),
    ),
    Mutation(
        "media: a truncated file counts as complete",
        "actors/core/data/image_header.py:find_damage",
        'None if _is_complete(header.media_type, raw) else "it is incomplete"',
        "None",
        (HEADERS,),
    ),
    Mutation(
        "media: an ask may contain a damaged image",
        "actors/session/user_input.py:_pack_message",
        "isinstance(part, Media) and (damage := part.damage) is not None",
        "isinstance(part, Media) and (damage := part.damage) is not None and False",
        (LIMITS,),
    ),
    Mutation(
        "images: more images than allowed follow a large one",
        "actors/core/render/attach.py:Attachments._many_images_reason",
        "(self._large or self._is_large(header)) and self._image_count >= few",
        "self._is_large(header) and self._image_count >= few",
        (LIMITS,),
    ),
    Mutation(
        "images: a large image is shown whatever comes with it",
        "actors/core/render/attach.py:Attachments._many_images_reason",
        "self._expected_images() > few",
        "False",
        (LIMITS,),
    ),
    Mutation(
        "images: a lane forgets its large images",
        "actors/core/render/attach.py:Attachments.updated_usage",
        "self._large",
        "0",
        (LIMITS,),
    ),
    Mutation(
        "images: a replay counts the images of all its requests together",
        "actors/core/render/walk.py:RenderWalk._expect_images",
        "min((end for end in self._ends if end > start), default=len(self._tail))",
        "len(self._tail)",
        (LIMITS,),
    ),
    Mutation(
        "schemas: a refusal of keys has no effect",
        "actors/adapters/settings.py:_fit_schema",
        '"schema_keys" in refused and renames_keys',
        "False",
        (REFUSED,),
    ),
    Mutation(
        "schemas: a refusal of patterns has no effect",
        "actors/adapters/settings.py:_fit_schema",
        '"schema_patterns" in refused and (without := host_schema(schema, "none", pattern)) != fitted',
        "(without := fitted) is None",
        (REFUSED,),
    ),
    Mutation(
        "schemas: a refusal names the provider's keys",
        "actors/adapters/refusals.py:name_refused_tool",
        "made.get(key, key)",
        "key",
        (REFUSED,),
    ),
)
