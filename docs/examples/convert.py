from actors import check, dialect, encode, render
from actors.adapters.importing import from_wire
from actors.core.recovery import recover

FOUND = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
    {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "weather", "arguments": '{"ci'}}]},
    {"role": "tool", "tool_call_id": "call_9", "content": "Oslo: 4 C"},
    {"role": "assistant", "content": ""},
]

imported = from_wire(FOUND, "openai")
for line in imported.diagnostics:
    print("read:    ", line)

target = dialect("anthropic")
rendered = render(imported.messages, recover(imported.messages), target)
for finding in rendered.report.findings:
    print("finding: ", finding.code, finding.fault_class, *finding.call_ids)
for call_id, reason in rendered.report.synthetic:
    print("synthetic:", call_id, reason)
for kind, count in rendered.report.losses:
    print("dropped: ", count, kind)

body = encode(rendered, model="claude-sonnet-5", system=imported.system)
print("faults:  ", check(body, target))
