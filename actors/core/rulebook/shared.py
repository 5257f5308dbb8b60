"""List the rules of every dialect. A family may have a rule of its own that is cited in place of a shared one."""

from actors.core.rulebook.rule import Rule

RULES = (
    Rule("ALL-01", "projection", "derived",
         "A request is one strict JSON object: no duplicate key, NaN or trailing data."),
    Rule("ALL-02", "projection", "documented",
         "A required field is present, and a field has the type and values it may have."),
    Rule("ALL-03", "projection", "derived",
         "A tool call id is not empty and matches the dialect's pattern in full."),
    Rule("ALL-04", "projection", "derived",
         "A tool call id is used for one call only, within the dialect's scope."),
    Rule("ALL-05", "rendering", "derived",
         "A transcript ends with a role of the dialect's `turns.last_roles`: never a prefill."),
    Rule("ALL-06", "projection", "seen",
         "Arguments are an object: as JSON text in a string, or as JSON, by dialect."),
    Rule("ALL-07", "projection", "second hand",
         "A request, and an object inside its messages or tools, has no key outside its allow-list."),
    Rule("ALL-08", "rendering", "documented",
         "A block is in a message whose role permits it: calls in assistant messages, results in their carrier."),
    Rule("ALL-09", "rendering", "derived",
         "A transcript begins with a role of the dialect's `turns.first_roles`."),
    Rule("ALL-10", "projection", "documented",
         "Media occur only in places that the dialect permits."),
    Rule("ALL-11", "projection", "documented",
         "No list of parts, text part or assistant message is empty; an assistant message without tool "
         "calls has content."),
    Rule("ALL-12", "canonical", "derived",
         "Text contains no lone surrogate."),
    Rule("ALL-13", "projection", "derived",
         "Declared tool names differ from each other."),
    Rule("ALL-14", "projection", "second hand",
         "A tool choice requires tools, and names one of them."),
    Rule("ALL-15", "projection", "documented",
         "A request has no more attachments than the dialect's `media.max_count` and `media.max_documents`."),
    Rule("ALL-16", "config", "derived",
         "A setting is one that the model accepts ([models](models.md))."),
)  # fmt: skip
