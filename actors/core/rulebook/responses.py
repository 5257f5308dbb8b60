"""List the rules of OpenAI Responses for stateless requests."""

from actors.core.rulebook.rule import PROVIDER_MODELS, SECRET, TOKENS, Rule

RULES = (
    Rule("OAR-01", "rendering", "seen",
         "Every function_call has a function_call_output.",
         "«No tool output found for ⟦function ⟧call» call_1."),
    Rule("OAR-02", "rendering", "seen",
         "A function_call_output answers an earlier function_call that has no output yet.",
         "«No tool call found for ⟦function ⟧call output» with call_id call_1."),
    Rule("OAR-03", "rendering", "seen",
         "A reasoning item is followed by the item that it produced. Either both items have ids, or neither.",
         "Item 'rs_…' «of type 'reasoning' was provided without its required following item»."),
    Rule("OAR-04", "projection", "seen",
         "An item with an id that was produced after reasoning follows that reasoning item, which also has an id.",
         "Item 'fc_…' of type 'function_call' «was provided without its required 'reasoning' item»: 'rs_…'."),
    Rule("OAR-05", "projection", "seen",
         "If responses are not stored, the request refers to no stored item: it has no item_reference, no previous "
         "response, and no reasoning without its encrypted content.",
         "Item with id 'rs_…' not found. «Items are not persisted when» `store` is set to false. Try again "
         "with `store` set to true, or remove this item from your input."),
    Rule("OAR-06", "projection", "seen",
         "An item id begins with the prefix of its type.",
         "Invalid 'input[4].id': 'call_…'. «Expected an ID that begins with» 'fc'."),
    Rule("OAR-07", "rendering", "seen",
         "An item id occurs only once in the input.",
         "«Duplicate item found with id» …"),
    Rule("OAR-08", "projection", "seen",
         "A call_id is no longer than the limit.",
         "Invalid '«input[⟦109⟧].call_id': string too long». Expected a string with maximum length 64, …",
         instead_of="ALL-03 long"),
    Rule("OAR-09", "projection", "seen",
         "Encrypted reasoning is sent only to the account and model that produced it.",
         "The encrypted content for item rs_2 could not be verified. Reason: Encrypted content "
         "organization_id did not match the target organization.",
         SECRET),
    Rule("OAR-10", "projection", "seen",
         "An output is a string or a list of parts.",
         "«Invalid type for 'input[⟦0⟧].output'»: expected one of a string or array of objects, but got an "
         "object instead."),
    Rule("OAR-11", "rendering", "seen",
         "Every custom_tool_call has a custom_tool_call_output.",
         "«Custom tool call output is missing» for call id: …"),
    Rule("OAR-12", "config", "seen",
         "The model exists.",
         "«The requested model '⟦x⟧' does not exist».",
         PROVIDER_MODELS),
    Rule("OAR-13", "overflow", "seen",
         "The input fits the model's context.",
         "Your input exceeds the context window of this model …",
         TOKENS),
    Rule("OAR-14", "rendering", "seen",
         "Outputs directly follow the calls that they answer. (OpenAI's own host accepts outputs anywhere after their "
         "calls, but compatible hosts do not.)",
         "«No tool output found for tool call» call-a."),
)  # fmt: skip
