"""The decoder's tables, as build/bin/schema_tables prints them, and the text about each key in keys.txt."""
import dataclasses
import json
import pathlib
import re
import subprocess

KEYS = pathlib.Path(__file__).with_name("keys.txt")
# Which word of a block decides how its options are read, and the key that holds them.
SELECTORS = {"stores": ("type", "options"), "sessions": ("transport", "options"),
             "receivers": ("transport", "options"), "senders": ("transport", "options"),
             "processors": ("type", "config")}
# What decode_kinds.c asks beyond the tables.
ALSO_REQUIRED = {("sessions[].options (mqtt)", "session")}


@dataclasses.dataclass
class Block:
    """One map of the document. `paths` has more than one entry where roles share a table."""
    paths: list
    kind: str  # the transport or type that reads it; "" = every one
    camel: bool
    fields: list
    text: str = ""

    @property
    def name(self):
        return self.paths[0] + (f" ({self.kind})" if self.kind else "")


class Tables:
    def __init__(self, program):
        raw = json.loads(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout)
        self.list_max = raw["list_max"]
        self.rules = raw["rules"]
        self.blocks = []
        self.options = {}  # (owner, word) -> Block
        self._words = {}   # owner -> {value: first word}
        self._raw_options = raw["options"]
        self._walk(raw["root"], "", "")
        self.root = self.blocks[0]
        self._texts()

    def _add(self, raw, path, kind):
        shared = path.startswith("stores.") and next(
            (b for b in self.blocks if b.kind == kind and b.fields == raw["fields"]), None)
        if shared:
            shared.paths.append(path)
            return shared, False
        self.blocks.append(Block([path or "document"], kind, raw["camel"], raw["fields"]))
        return self.blocks[-1], True

    def _walk(self, raw, path, kind):
        block, new = self._add(raw, path, kind)
        for field in raw["fields"] if new else []:
            if "block" in field:
                step = {"block": "", "blocks": "[]", "block_map": ".<name>"}[field["type"]]
                field["path"] = f"{path}.{field['key']}".lstrip(".") + step
                field["child"] = self._walk(field["block"], field["path"], kind)
        if not kind:
            self._walk_options(raw, path)
        return block

    def _walk_options(self, raw, owner):
        for option in self._raw_options:
            if option["owner"] != owner:
                continue
            word_key, options_key = self.selector(owner)
            words = next((f["words"] for f in raw["fields"] if f["key"] == word_key), [{"name": "mqtt", "value": 1}])
            word = next(w["name"] for w in words if w["value"] == option["selector"])
            self.options[owner, word] = self._walk(option["block"], f"{owner}.{options_key}", word)

    @staticmethod
    def selector(owner):
        return SELECTORS[re.split(r"[.\[]", owner)[0]]

    def _texts(self):
        """Reads keys.txt into the blocks and their fields; every key has its text, and every text its key."""
        texts, faults = read_texts(KEYS), []
        for block in self.blocks:
            about = texts.pop(block.name, None)
            if about is None:
                faults.append(f"keys.txt lacks [{block.name}]")
                continue
            block.text, keys = about
            for field in block.fields:
                field["required"] |= (block.name, field["key"]) in ALSO_REQUIRED
                field["default_text"], field["text"] = keys.pop(field["key"], (None, None))
                if not field["text"]:
                    faults.append(f"keys.txt: [{block.name}] lacks {field['key']}")
            faults += [f"keys.txt: [{block.name}] describes {key}, which no table has" for key in keys]
        faults += [f"keys.txt describes [{name}], which no table has" for name in texts]
        if faults:
            raise SystemExit("\n".join(faults))


def read_texts(path):
    """{block: (text, {key: (default or None, text)})}. See the top of keys.txt for the form."""
    blocks, name, key = {}, None, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        heading = re.fullmatch(r"\[((?:[^\[\]]|\[\])+)\] ?(.*)", line)
        entry = re.fullmatch(r"(\w+)(?: \(default: (.*?)\))?: (.+)", line)
        if heading and heading[1] not in blocks:
            name, key = heading[1], None
            blocks[name] = (heading[2], {})
        elif line.startswith("  ") and name:
            if key:
                default, text = blocks[name][1][key]
                blocks[name][1][key] = (default, f"{text} {line.strip()}")
            else:
                blocks[name] = (f"{blocks[name][0]} {line.strip()}".strip(), blocks[name][1])
        elif entry and name and entry[1] not in blocks[name][1]:
            key = entry[1]
            blocks[name][1][key] = (entry[2], entry[3])
        else:
            raise SystemExit(f"{path.name}:{number}: neither [block], key: text nor an indented line: {line}")
    return blocks
