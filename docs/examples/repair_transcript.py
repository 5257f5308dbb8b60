import json

from actors.transcripts import check, dialect, encode, from_wire, render

transcript = [
    {"role": "user", "content": "Weather in Oslo and in Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_0", "content": "Oslo: 4 C"},
]

history, ledger = from_wire(transcript, "openai")
for interaction in ledger.interactions():
    print(interaction.call_id, interaction.status)

anthropic = dialect("anthropic")
rendered = render(history, ledger, anthropic)
body = encode(rendered, model="claude-sonnet-5")

print("synthetic:", rendered.report.synthetic)
print("faults:", check(body, anthropic))
for message in json.loads(body)["messages"]:
    print(message["role"], [block["type"] for block in message["content"]])
