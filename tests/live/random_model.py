"""A model with random weights for llama.cpp, where no other is available: a server needs one to judge a request.

    python -m tests.live.random_model random.gguf
    llama-server -m random.gguf --jinja -c 131072 -np 2 --chat-template-file TEMPLATE.jinja

It generates random printable ASCII, and sometimes ends its answer or starts a call in one of the usual forms. The
server's grammar then makes it complete the call with a known name and arguments that fit the schema. With this, the
server parses our requests, applies a real model's chat template, streams answers and calls, and parses them again. It
does not show how a capable model understands a conversation.

The file is GGUF 3: a header, key-value pairs, a table of tensors, and their data. The architecture is `llama`. The
vocabulary is printable ASCII, the 256 bytes (so that it covers any text), and the marks. All weights are random except
a few: the first dimension of the hidden state is constant, so a token's weight in it determines the token's
probability; the second is high after a mark that the end of a line must follow.
"""

import struct
import sys
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

WIDTH, HEADS, INNER, LAYERS, CONTEXT = 32, 1, 32, 1, 131_072
CONTROLS = ("<unk>", "<s>", "</s>")
PRINTABLE = tuple(chr(code).replace(" ", "\u2581") for code in range(0x20, 0x7F))
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
MARKS = ("<tool_call>", "[TOOL_CALLS]", "</think>")
"""Marks in many templates for the start of a call and the end of thinking."""
TOKENS = (*CONTROLS, *PRINTABLE, *BYTES, *MARKS)
_NORMAL, _UNKNOWN, _CONTROL, _DEFINED, _BYTE = 1, 2, 3, 4, 6
KINDS = (
    _UNKNOWN,
    *[_CONTROL] * (len(CONTROLS) - 1),
    *[_NORMAL] * len(PRINTABLE),
    *[_BYTE] * len(BYTES),
    *[_DEFINED] * len(MARKS),
)
"""The type of each token, by llama.cpp's numbers."""

SILENT, LIKELY = frozenset({*CONTROLS, *BYTES}) - {"</s>"}, frozenset({"</s>", '"', *MARKS})
"""Tokens that are never generated on their own, and tokens that are more likely than others."""

ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9


def model(seed: int = 0) -> bytes:
    """Return the bytes of the file. The same seed gives the same model."""
    pairs, tensors = list(_pairs()), list(_tensors(Random(seed)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs)
    table, data = b"", b""
    for name, shape, values in tensors:
        dimensions = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        table += _string(name) + dimensions + struct.pack("<IQ", 0, len(data))  # 0: 32-bit floats
        data += _pad(_little(values))
    return _pad(head + table) + data


def _pairs() -> Iterable[bytes]:
    """Yield the metadata, each pair in its stored form."""
    yield _pair("general.architecture", _STRING, _string("llama"))
    for name, number in {
        "context_length": CONTEXT,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": INNER,
        "rope.dimension_count": WIDTH // HEADS,
        "attention.head_count": HEADS,
    }.items():
        yield _pair(f"llama.{name}", _UINT32, struct.pack("<I", number))
    yield _pair("llama.attention.layer_norm_rms_epsilon", _FLOAT32, struct.pack("<f", 1e-5))
    yield _pair("tokenizer.ggml.model", _STRING, _string("llama"))
    yield _list("tokenizer.ggml.tokens", _STRING, [_string(token) for token in TOKENS])
    yield _list("tokenizer.ggml.scores", _FLOAT32, [struct.pack("<f", 0.0)] * len(TOKENS))
    yield _list("tokenizer.ggml.token_type", _INT32, [struct.pack("<i", kind) for kind in KINDS])
    for number, name in enumerate(("unknown", "bos", "eos")):
        yield _pair(f"tokenizer.ggml.{name}_token_id", _UINT32, struct.pack("<I", number))
    yield _pair("tokenizer.ggml.add_space_prefix", _BOOL, b"\0")


def _tensors(random: Random) -> Iterable[tuple[str, tuple[int, ...], "array[float]"]]:
    """Yield the weights: name, shape with the fastest dimension first, values."""

    def drawn(columns: int, rows: int) -> "array[float]":
        return array("f", [random.gauss(0, columns**-0.5) for _ in range(columns * rows)])

    ones = array("f", [1.0] * WIDTH)
    yield "token_embd.weight", (WIDTH, len(TOKENS)), _set_input_weights(drawn(WIDTH, len(TOKENS)))
    yield "output_norm.weight", (WIDTH,), ones
    yield "output.weight", (WIDTH, len(TOKENS)), _set_output_weights(drawn(WIDTH, len(TOKENS)))
    for layer in range(LAYERS):
        for part in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{part}.weight", (WIDTH,), ones
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{part}.weight", (WIDTH, WIDTH), drawn(WIDTH, WIDTH)
        for part in ("ffn_gate", "ffn_up"):
            yield f"blk.{layer}.{part}.weight", (WIDTH, INNER), drawn(WIDTH, INNER)
        yield f"blk.{layer}.ffn_down.weight", (INNER, WIDTH), drawn(INNER, WIDTH)


def _set_input_weights(rows: "array[float]") -> "array[float]":
    """Set the first two dimensions of the input embeddings."""
    for row, token in enumerate(TOKENS):
        rows[row * WIDTH], rows[row * WIDTH + 1] = 20.0, 40.0 if token == "<tool_call>" else 0.0
    return rows


def _set_output_weights(rows: "array[float]") -> "array[float]":
    """Set the output weights of the first two dimensions, which determine each token's probability."""
    for row, token in enumerate(TOKENS):
        rows[row * WIDTH] = -3.0 if token in SILENT else 0.4 if token in LIKELY else 0.0
        rows[row * WIDTH + 1] = 6.0 if token == "<0x0A>" else 0.0
    return rows


def _pair(key: str, kind: int, value: bytes) -> bytes:
    return _string(key) + struct.pack("<I", kind) + value


def _list(key: str, kind: int, values: Sequence[bytes]) -> bytes:
    return _pair(key, _ARRAY, struct.pack("<IQ", kind, len(values)) + b"".join(values))


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _little(values: "array[float]") -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.live.random_model FILE.gguf")
    Path(sys.argv[1]).write_bytes(model())
