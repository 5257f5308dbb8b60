from actors.transcripts import check, dialect, encode, from_wire, render

FOUND = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "name": "ann", "content": [{"type": "text", "text": "Weather?"}]},
    {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "weather", "arguments": '{"ci'}}]},
    {"role": "tool", "tool_call_id": "call_9", "content": "Oslo: 4 C"},
    {"role": "assistant", "content": ""},
]

history, ledger = from_wire(FOUND, "openai")
for line in history.report.notes:
    print("read:    ", line)
for path, count in history.report.left_out:
    print("left out:", count, path)

target = dialect("anthropic")
rendered = render(history, ledger, target)
for call_id, reason in rendered.report.synthetic:
    print("synthetic:", call_id, reason)
for kind, count in rendered.report.losses:
    print("dropped: ", count, kind)
for kind, count in rendered.report.fillers:
    print("added:   ", count, kind)

body = encode(rendered, model="claude-sonnet-5")
print("faults:  ", check(body, target))
