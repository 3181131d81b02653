# SPDX-License-Identifier: Apache-2.0
# exchange.py PROGRAM: NumPy, gguf and Hugging Face's tokenizers write files of models, and read what
# tests/programs/model_files.cpp makes of them. With DEFT_DATA_DIR also the tokenizers of the real
# files (tokenizer.json, *.gguf) below it. Exits with 77 where there are no such packages.
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy as np
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

SENTENCES = """The quick brown fox jumps over the lazy dog, doesn't it? I'm sure they'll say they've seen it.
Großmutter backt am Sonntag Apfelkuchen; Übung macht den Meister – naïve façade, Ærøskøbing.
L'été dernier, nous sommes allés à la plage : « quelle chaleur ! » s'écria-t-elle.
İstanbul'da ışıklar söndü, ĞÜŞİÖÇ ğüşiöç. Iğdır.
Tiếng Việt có nhiều dấu: ắ ằ ẳ ẵ ặ, ế ề ể ễ ệ, ộ ợ ữ.
Съешь же ещё этих мягких французских булок, да выпей чаю. Й Ё ї ґ.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΌΔΥΣΣΕΎΣ Σίσυφος; ἀρχή ᾧ.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. قُرْآن ١٢٣٤
עטלף אבק נס דרך מזגן שהתפוצץ כי חם. שָׁלוֹם
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। क्षत्रिय १२३
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓
天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。2024年１２月
いろはにほへと ちりぬるを。カタカナ ガギグ ﾊﾝｶｸ、東京タワー333m
다람쥐 헌 쳇바퀴에 타고파. 안녕하세요! 한국어 띄어쓰기
ქართული ენა მხედრული დამწერლობით. ᲗᲑᲘᲚᲘᲡᲘ
Հայերեն լեզու, և նրա տառերը։ ԵՐԵՎԱՆ
தமிழ் மொழி உலகின் பழமையான மொழிகளில் ஒன்று.
Zażółć gęślą jaźń — „cudzysłów” … № 5, ½ + ⅓ = ⅚, x² ≤ y³, 10€ ≈ $11 ± 2%
👩‍👩‍👧‍👦 family 👍🏽 thumbs 🇩🇪 flag 🥰🫠 ☃️ snow
def fibonacci(n):\n    if n <= 1:\n        return n\n\treturn fibonacci(n-1)  # 0x1F, 3.14e-10\n
{"key": ["value", null, -1.5e+3], 'it''s': "\\u00e9"} <a href="x?y=1&z=2">https://example.org/~a_b</a>
<|im_start|>user\nWhat's 12345678+90?<|im_end|>\n<|im_start|>assistant\n
[CLS] is not [SEP], nor [MASK]; [UNK] [PAD]""".split("\n")
SENTENCES = [s.encode().decode("unicode_escape").encode("latin1").decode() if "\\n" in s else s
             for s in SENTENCES]


def make_texts():
    """A hundred and more: the sentences, their pieces joined at random, and what is special."""
    r = random.Random(7)
    texts = SENTENCES + [s.upper() for s in SENTENCES[:8]] + [
        "", " ", "  ", "\n", "\r\n\r\n", " \t \n x", "x  ", "   x   y ", "a\u00a0b\u2003c\u3000d",
        "e\u0301 vs \u00e9", "\u0130\u0131", "\ufb01\u2460\u00b2", "\u200bzero\u200dwidth\ufeff",
        "\u0001\u007f\u0085control\u2028line", "\ufffd", "don't DON'T 'sit 'tis ''s '", "1 22 333 4444x5",
        "a" * 1000, "ab" * 500, "\u0e01" * 120, "w" * 100, "w" * 101, "-" * 99, "!?" * 50]
    pieces = [w for s in SENTENCES for w in s.split(" ")]
    glue = [" ", " ", "  ", "\n", "", "\t", ", ", "'s ", "7"]
    while len(texts) < 200:
        texts.append("".join(r.choice(pieces) + r.choice(glue) for _ in range(r.randint(1, 12))))
    return texts


def fail(*what):
    sys.exit(" ".join(str(w) for w in what))


def compare_tokens(path, tokenizer, texts):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = [[int(i) for i in line.split()] for line in open(path + ".ids")]
    decoded = open(path + ".texts", "rb").read().split(b"\0")[:-1]
    if len(ids) != len(texts) or len(decoded) != len(texts):
        fail(path, "has", len(ids), "lines")
    for text, got, again in zip(texts, ids, decoded):
        expected = tokenizer.encode(text).ids
        if got != expected:
            fail(path, repr(text), "gave", got, "expected", expected)
        if again.decode(errors="replace") != tokenizer.decode(expected):
            fail(path, repr(text), "decoded", again, "expected", tokenizer.decode(expected))
    print(os.path.basename(path), len(texts), "texts,", sum(map(len, ids)), "tokens")


def byte_level(model, single_digits, prefix=False):
    t = Tokenizer(model)
    words = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if single_digits else []
    t.pre_tokenizer = pre_tokenizers.Sequence(digits + [words]) if digits else words
    t.decoder = decoders.ByteLevel()
    return t


def trained_bpe(single_digits, prefix=False):
    t = byte_level(models.BPE(), single_digits, prefix)
    t.train_from_iterator(SENTENCES * 3, trainers.BpeTrainer(
        vocab_size=2000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"]))
    return t


def trained_pieces(**options):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(**options)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(SENTENCES[:10] * 3, trainers.WordPieceTrainer(
        vocab_size=1200, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(n, t.token_to_id(n)) for n in ("[CLS]", "[SEP]")])
    return t


def bpe_of_gguf(path):
    values = {k: f.contents() for k, f in gguf.GGUFReader(path).fields.items()}
    tokens = values["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in values["tokenizer.ggml.merges"]]
    t = byte_level(models.BPE({k: i for i, k in enumerate(tokens)}, merges),
                   values["tokenizer.ggml.pre"] == "smollm")
    t.add_special_tokens([k for k, kind in zip(tokens, values["tokenizer.ggml.token_type"]) if kind == 3])
    return t


def write_bpe_gguf(path, t):
    w = gguf.GGUFWriter(path, "llama")
    vocabulary = sorted(t.get_vocab().items(), key=lambda e: e[1])
    model = json.loads(t.to_str())["model"]
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("smollm")
    w.add_token_list([k for k, i in vocabulary])
    w.add_token_types([3 if k.startswith("<|") else 1 for k, i in vocabulary])
    w.add_token_merges([" ".join(m) for m in model["merges"]])
    for write in (w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close):
        write()


def write_gguf(path):
    """A tensor of each type, and a value of each; what reading is to give."""
    r = np.random.default_rng(7)
    w = gguf.GGUFWriter(path, "llama")
    values = {}

    def value(name, add, v):
        add(name, v)
        values[name] = v
    for bits in (8, 16, 32, 64):
        value(f"u{bits}", getattr(w, f"add_uint{bits}"), (1 << bits) - 1)
        value(f"i{bits}", getattr(w, f"add_int{bits}"), -(1 << bits - 1))
    value("f32", w.add_float32, 0.5)
    value("f64", w.add_float64, 0.1)
    value("bool", w.add_bool, True)
    value("text", w.add_string, "größe 天")
    value("ints", w.add_array, [1, 2, 3])
    value("texts", w.add_array, ["a", "", "b c"])
    x = r.standard_normal((6, 96)).astype(np.float32)
    expected = {"F32": x, "F64": x.astype(np.float64), "I8": r.integers(-128, 127, (3, 5), np.int8),
                "I32": r.integers(-9, 9, (2, 3, 4), np.int32), "I64": np.array([1 << 60], np.int64)}
    for name, tensor in expected.items():
        w.add_tensor(name, tensor)
    w.add_tensor("F16", x.astype(np.float16))
    expected["F16"] = x.astype(np.float16).astype(np.float32)
    for kind in ("BF16", "Q8_0", "Q4_0", "Q4_1"):
        kind = gguf.GGMLQuantizationType[kind]
        blocks = gguf.quants.quantize(x, kind)
        w.add_tensor(kind.name, blocks, raw_dtype=kind)
        expected[kind.name] = gguf.quants.dequantize(blocks, kind)
    for write in (w.write_header_to_file, w.write_kv_data_to_file, w.write_tensors_to_file, w.close):
        write()
    return expected, values


def compare_arrays(what, got, expected):
    if got.keys() != expected.keys():
        fail(what, "has", sorted(got), "expected", sorted(expected))
    for name, e in expected.items():
        g = got[name]
        if g.dtype != e.dtype or g.shape != e.shape or not np.array_equal(g, e):
            fail(what, name, "is", g.dtype, g.shape, g, "expected", e.dtype, e.shape, e)


with tempfile.TemporaryDirectory() as folder:
    path = lambda name: os.path.join(folder, name)
    texts = make_texts()
    with open(path("texts"), "wb") as f:
        f.write(b"".join(t.encode() + b"\0" for t in texts))
    arrays = {"layer/w": np.arange(6, dtype=np.float32).reshape(2, 3), "count": np.array(-7, np.int64),
              "flags": np.array([True, False]), "none": np.zeros((0, 4)), "größe": np.ones(100000),
              "ids": np.array([[3, -3]], np.int32), "bytes": np.array([0, 255], np.uint8)}
    np.savez(path("plain.npz"), **arrays)
    np.savez_compressed(path("compressed.npz"), **arrays)
    tensors, values = write_gguf(path("python.gguf"))

    tokenizers = {}
    for name, t in {"gpt2.bpe.json": trained_bpe(False), "smollm.bpe.json": trained_bpe(True),
                    "prefix.bpe.json": trained_bpe(True, True),
                    "uncased.pieces.json": trained_pieces(lowercase=True),
                    "cased.pieces.json": trained_pieces(lowercase=False),
                    "accents.pieces.json": trained_pieces(lowercase=True, strip_accents=False,
                                                          handle_chinese_chars=False)}.items():
        t.save(path(name))
        tokenizers[name] = t
    write_bpe_gguf(path("smollm.bpe.gguf"), tokenizers["smollm.bpe.json"])
    tokenizers["smollm.bpe.gguf"] = tokenizers["smollm.bpe.json"]
    gpt2 = Tokenizer.from_file(path("gpt2.bpe.json"))
    gpt2.model.save(folder, "gpt2")
    os.rename(path("gpt2-vocab.json"), path("gpt2.vocab.json"))
    os.rename(path("gpt2-merges.txt"), path("gpt2.merges.txt"))
    plain = byte_level(models.BPE.from_file(path("gpt2.vocab.json"), path("gpt2.merges.txt")), False)
    plain.add_special_tokens(["<|endoftext|>"])
    tokenizers["gpt2.vocab.json"] = plain
    uncased = tokenizers["uncased.pieces.json"]
    with open(path("uncased.pieces.txt"), "w") as f:
        f.writelines(k + "\n" for k, i in sorted(uncased.get_vocab().items(), key=lambda e: e[1]))
    tokenizers["uncased.pieces.txt"] = uncased

    data = os.environ.get("DEFT_DATA_DIR")
    for number, file in enumerate(sorted(pathlib.Path(data).rglob("*")) if data else []):
        name = None
        if file.name == "tokenizer.json":
            t = Tokenizer.from_file(str(file))
            name = f"real{number}." + ("pieces" if isinstance(t.model, models.WordPiece) else "bpe") + ".json"
        elif file.suffix == ".gguf":
            t, name = bpe_of_gguf(str(file)), f"real{number}.bpe.gguf"
        if name:
            shutil.copy(file, path(name))
            tokenizers[name] = t

    subprocess.run([sys.argv[1], folder], check=True)

    for name in ("plain.npz", "compressed.npz"):
        compare_arrays(name, dict(np.load(path("deft_" + name))), arrays)
    compare_arrays("python.gguf", load_file(path("python.gguf.safetensors")), tensors)
    got = dict(line.rstrip("\n").split(" = ", 1) for line in open(path("python.gguf.values")))
    for name, v in values.items():
        expected = "[" + ", ".join(map(str, v)) + "]" if isinstance(v, list) else str(v)
        if got.get(name) != expected:
            fail("python.gguf", name, "is", got.get(name), "expected", expected)
    for name, t in tokenizers.items():
        compare_tokens(path(name), t, texts)
print("equal")
