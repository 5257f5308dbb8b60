"""What Google's generateContent demands, by the Gemini API and by Vertex AI."""

from actors.core.rulebook.rule import PROVIDER_MODELS, SECRET, TOKENS, Rule

LOAD = "depends on the provider's load"
QUOTA = "depends on the account's quota"

RULES = (
    Rule("GEM-01", "rendering", "seen",
         "The content after a model content with N functionCalls holds N functionResponses.",
         "Please ensure that the «number of function response parts is equal to the number of» function call "
         "parts of the function call turn."),
    Rule("GEM-02", "rendering", "seen",
         "A content with functionCalls comes directly after a user content.",
         "Please ensure that «function call turn comes immediately after a user turn» or after a function "
         "response turn."),
    Rule("GEM-03", "rendering", "seen",
         "A functionResponse stands in the content directly after its call's, before anything else in it.",
         "Please ensure that «function response turn comes immediately after a function call» turn."),
    Rule("GEM-04", "projection", "seen",
         "Where the dialect demands it, the first functionCall of a model content has a thoughtSignature.",
         "Function call is «missing a thought_signature» in functionCall parts. This is required for tools to "
         "work correctly, and missing thought_signature may lead to degraded model performance. …"),
    Rule("GEM-05", "projection", "seen",
         "A thoughtSignature is of the same model, account and route, on the part it came with.",
         "Corrupted thought signature.",
         SECRET),
    Rule("GEM-06", "projection", "seen",
         "A thoughtSignature is base64.",
         "Invalid value at 'contents[1].parts[0].«thought_signature' (TYPE_BYTES)», Base64 decoding failed for "
         '"…"'),
    Rule("GEM-07", "rendering", "seen",
         "There is at least one content.",
         "* GenerateContentRequest.«contents: contents is not specified»", instead_of="ALL-02 nothing"),
    Rule("GEM-08", "projection", "seen",
         "A role is user or model.",
         "«Please use a valid role: »user, model.", instead_of="ALL-02 role"),
    Rule("GEM-09", "projection", "seen",
         "On Vertex AI no functionCall and no functionResponse has an id.",
         "Invalid JSON payload received. Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot "
         "find field."),
    Rule("GEM-10", "projection", "seen",
         "No object has a key outside its allow-list.",
         "Invalid JSON payload received. «Unknown name ⟦\"x\" at 'contents[0].parts[0]': ⟧Cannot find field».",
         instead_of="ALL-07"),
    Rule("GEM-11", "rendering", "second hand",
         "A content has parts, and a part has exactly one kind of data; only a signed text may be empty.",
         "…«must include at least one parts field»", instead_of="ALL-11"),
    Rule("GEM-12", "overflow", "seen",
         "The prompt fits the model's context.",
         "The input token count (1043256) exceeds the maximum number of tokens allowed (1048576).",
         TOKENS),
    Rule("GEM-13", "config", "seen",
         "The model exists.",
         "models/x is not found for API version v1beta, or is not supported for generateContent. Call "
         "ModelService.ListModels…",
         PROVIDER_MODELS),
    Rule("GEM-14", "config", "seen",
         "The model is not overloaded.",
         "The model is overloaded. Please try again later.",
         LOAD),
    Rule("GEM-15", "config", "seen",
         "The quota is not used up.",
         "You exceeded your current quota, please check your plan and billing details.",
         QUOTA),
    Rule("GEM-16", "rendering", "derived",
         "Responses stand in call order, each with the name of its call and with its id, if it has one."),
    Rule("GEM-17", "projection", "documented",
         "A tool name matches the dialect's pattern: a letter or `_`, then letters, digits, `_`, `.` and `-`.",
         instead_of="ALL-02 name"),
    Rule("GEM-18", "rendering", "derived",
         "Roles alternate.", instead_of="CMP-01 turns"),
)  # fmt: skip
