"""List the rules of AWS Bedrock Converse."""

from actors.core.rulebook.rule import PROVIDER_MODELS, TOKENS, Rule

RULES = (
    Rule("BED-01", "rendering", "seen",
         "Every toolUse is answered in the next message.",
         "«Expected toolResult blocks at »messages.2.content for the following Ids: tooluse_…",
         instead_of="OAC-01 open"),
    Rule("BED-02", "rendering", "seen",
         "A toolResult answers a toolUse of the previous message, and each toolUse is answered only once.",
         "The «number of toolResult blocks at ⟦messages.2.content⟧ exceeds the number of toolUse» blocks of "
         "previous turn.", instead_of="OAC-02 stray, OAC-02 second"),
    Rule("BED-03", "projection", "seen",
         "A request that has tool blocks in its messages declares tools.",
         "The «toolConfig field must be defined when using toolUse» and toolResult content blocks."),
    Rule("BED-04", "projection", "seen",
         "No text is empty or only whitespace.",
         "The «text field in the ContentBlock object at ⟦messages.0.content.0⟧ is blank». Add text to the text "
         "field, and try again."),
    Rule("BED-05", "projection", "seen",
         "No message is empty.",
         "The «content field in the Message object at ⟦messages.1⟧ is empty». …", instead_of="ALL-11"),
    Rule("BED-06", "rendering", "seen",
         "Roles alternate.",
         "A «conversation must alternate between user and assistant roles». Make sure the conversation "
         "alternates between user and assistant roles and try again.", instead_of="CMP-01 turns"),
    Rule("BED-07", "rendering", "seen",
         "A conversation starts with a user message.",
         "A «conversation must start with a user message». Try again with a conversation that starts with a "
         "user message.", instead_of="ALL-02 nothing, ALL-09"),
    Rule("BED-08", "projection", "documented",
         "A toolUseId matches `[a-zA-Z0-9_.:-]{1,64}` and a tool name `[a-zA-Z0-9_-]{1,64}`, declared or in "
         "history.",
         "… failed to satisfy constraint: Member must satisfy regular expression pattern: …",
         instead_of="ALL-03, ALL-02 name"),
    Rule("BED-09", "projection", "seen",
         "A block has a kind that the model accepts. We check whether the dialect accepts media of this kind.",
         "This model «doesn't support the ⟦video⟧ content block» that you provided…"),
    Rule("BED-10", "rendering", "seen",
         "The vendor of the underlying model accepts the request. We check that results are at the beginning of "
         "their message, and that reasoning is too.",
         "The model returned the following errors: …",
         instead_of="ANT-03 order, ANT-32 mark, ANT-34 mark, ANT-58, ANT-59, ANT-61"),
    Rule("BED-11", "projection", "seen",
         "No object has an unknown key.",
         "«extraneous key [⟦toolResult⟧] is not permitted»…", instead_of="ALL-07"),
    Rule("BED-12", "overflow", "seen",
         "The request fits the model's context.",
         "Input is too long for requested model.",
         TOKENS),
    Rule("BED-13", "projection", "documented",
         "A message with a document also has a text."),
    Rule("BED-14", "config", "seen",
         "The model exists.",
         "The «provided model identifier is invalid».",
         PROVIDER_MODELS),
    Rule("BED-15", "projection", "seen",
         "The documents of a request have distinct names.",
         "Messages «can⟦'⟧t contain duplicate document names». Rename the document and retry your request."),
    Rule("BED-16", "projection", "seen",
         "A request has at most 5 documents (`media.max_documents`).",
         "You «can⟦'⟧t include more than ⟦5⟧ documents in a request».", instead_of="ALL-15 documents"),
    Rule("BED-17", "projection", "seen",
         "A request has at most 20 images and documents, by the rules of the model's vendor (`media.max_count`).",
         "The model returned the following errors: too many images and documents: 21 + 0 > 20", instead_of="ALL-15"),
    Rule("BED-18", "projection", "seen",
         "A document's name has 1 to 200 letters, digits, spaces, hyphens, parentheses and square brackets, and no "
         "two spaces in a row.",
         "The «document file name can only contain» alphanumeric characters, whitespace characters, hyphens, "
         "parentheses, and square brackets. The name can't contain more than one consecutive whitespace "
         "character. Check that the file name conforms to these restrictions and retry your request."),
)  # fmt: skip
