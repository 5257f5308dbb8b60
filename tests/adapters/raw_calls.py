"""Provide unparsed tool calls in the form that chat templates of open models write."""

from collections.abc import Mapping

RAW_CALLS: Mapping[str, str] = {
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
    '{"path": "x"}<|tool_call_end|><|tool_calls_section_end|>',
    "kimi without its section": '<|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"path": "x"}',
    "qwen": '<tool_call>\n{"name": "read", "arguments": {"path": "x"}}\n</tool_call>',
    "qwen coder": "<tool_call>\n<function=read>\n<parameter=path>\nx\n</parameter>\n</function>\n</tool_call>",
    "qwen coder without its wrapper": "<function=read>\n<parameter=path>\nx\n</parameter>\n</function>",
    "qwen without its first token": '{"name": "read", "arguments": {"path": "x"}}\n</tool_call>',
    "glm 4": 'read\n{"path": "x"}<|observation|>',
    "glm": "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    "glm 4.7": "<tool_call>read<arg_key>path</arg_key><arg_value>x</arg_value></tool_call>",
    "glm without arguments": "<tool_call>read</tool_call>",
    "harmony": '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "x"}<|call|>',
    "harmony in its role": '<|start|>assistant to=functions.read<|channel|>commentary<|message|>{"path": "x"}',
    "harmony built in": '<|channel|>analysis to=python<|message|>print("x")',
    "harmony without special tokens": 'commentary to=functions.read json{"path": "x"}',
    "harmony that goes on with a result": "<|start|>functions.read to=assistant<|channel|>commentary<|message|>x",
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n"
    '```json\n{"path": "x"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "dsml": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read">\n<｜DSML｜parameter name="path" string="true">x'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "dsml of V4": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="read">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
    "dsml in ascii": '<|DSML|function_calls>\n<|DSML|invoke name="read">\n</|DSML|invoke>\n</|DSML|function_calls>',
    "llama": '<|python_tag|>{"name": "read", "parameters": {"path": "x"}}',
    "llama custom": '<function=read>{"path": "x"}</function>',
    "llama 4": '<|python_start|>read(path="x")<|python_end|>',
    "mistral": '[TOOL_CALLS] [{"name": "read", "arguments": {"path": "x"}}]',
    "mistral v11": '[TOOL_CALLS]read[CALL_ID]aaaaaaaa1[ARGS]{"path": "x"}',
    "mistral v13": '[TOOL_CALLS]read[ARGS]{"path": "x"}',
    "mistral without its first token": 'read[ARGS]{"path": "x"}',
    "minimax": '<minimax:tool_call>\n<invoke name="read">\n<parameter name="path">x</parameter>\n</invoke>',
    "minimax M1": '<tool_calls>\n{"name": "read", "arguments": {"path": "x"}}\n</tool_calls>',
    "invoke": '<function_calls>\n<invoke name="read">\n</invoke>\n</function_calls>',
    "gemma": "<|tool_call>call:read{path:x}<tool_call|>",
    "granite": '<|tool_call|>[{"name": "read", "arguments": {"path": "x"}}]',
    "cohere": '<|START_ACTION|>[{"tool_name": "read", "parameters": {"path": "x"}}]<|END_ACTION|>',
    "nemotron": '<TOOLCALL>[{"name": "read", "arguments": {"path": "x"}}]</TOOLCALL>',
    "seed": "<seed:tool_call><function=read></function></seed:tool_call>",
    "lfm": '<|tool_call_start|>[read(path="x")]<|tool_call_end|>',
    "longcat": '<longcat_tool_call>{"name": "read"}</longcat_tool_call>',
    "gigachat": '<|function_call|>{"name": "read"}',
}

ABOUT_CALLS: Mapping[str, str] = {
    "inline code": "Qwen writes `<tool_call>{...}</tool_call>`, and Kimi `<|tool_calls_section_begin|>`.",
    "longer inline code": "It is ``<tool_call>{`x`}</tool_call>`` in Qwen.",
    "a fence": 'Like this:\n\n```xml\n<tool_call>\n{"name": "read"}\n</tool_call>\n```\n\nThat is all.',
    "a fence of tildes": "~~~\n[TOOL_CALLS]read[ARGS]{}\n~~~",
    "a fence in a list": "1. Kimi:\n   ```\n   <|tool_call_begin|>functions.read:0\n   ```\n- ```\n  <arg_key>\n  ```",
    "a fence that is not closed": "```\n<|python_tag|>read.call()",
    "quotes": "The token \"<|python_tag|>\" begins a call, “<tool_call>” another, '<arg_key>' its key.",
    "a word in brackets": "Between <tool_call> and </tool_call> stands JSON, and [TOOL_CALLS] is Mistral's token.",
    "almost a token": "<|tool_call_begin>, < tool_call >{, <tool_calls_section_begin|>, [TOOL CALLS][{",
    "JSON": '{"tokens": ["<tool_call>{", "say <|python_tag|> now"]}',
    "other tags": "<b>bold</b>, List<int>, a < b, <think> about it, to=me, x[0]",
}
"""Answers that speak about such calls, or only look like them."""
