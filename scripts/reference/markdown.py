"""docs/configuration.md: the template configuration.md.in with the tables, the rules and the examples in it."""
import pathlib
import re

import durations

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATE = pathlib.Path(__file__).with_name("configuration.md.in")
NOTE = "<!-- Written by `make docs` from src/blueprint and scripts/reference; don't edit it here. -->\n\n"
INT32_MAX = 2**31 - 1
RULE_GROUPS = {"D": "reading the document", "K": "keys and values", "V": "what belongs together",
               "C": "clustered bridges", "P": "budgets and guarantees", "M": "MQTT", "Q": "SQS", "H": "HTTP",
               "W": "warnings: the document is accepted", "NOT_SUPPORTED": "this release"}


def write(tables):
    filled = {"keys": lambda _: keys(tables), "rules": lambda _: rules(tables), "example": example,
              "list_max": lambda _: str(tables.list_max)}
    text = re.sub(r"\{\{(\w+)(?: (\S+))?\}\}", lambda m: filled[m[1]](m[2]), TEMPLATE.read_text(encoding="utf-8"))
    return NOTE + text


def anchor(name):
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def link_rules(tables, text):
    names = {rule["name"] for rule in tables.rules}

    def link(match):
        if match[1] not in names:
            raise SystemExit(f"keys.txt names the rule {match[1]}, which rules.h does not have: {text}")
        return f"[{match[1]}](#{anchor('rule ' + match[1])})"

    return re.sub(r"`([A-Z]\d+)`", link, text)


def keys(tables):
    return "\n".join(section(tables, block) for block in tables.blocks)


def section(tables, block):
    level = "###" if "." not in block.paths[0] else "####"
    title = ", ".join(f"`{path}`" for path in block.paths) + (f", {block.kind}" if block.kind else "")
    if block is tables.root:
        title = "The document"
    rows = ["| key | type | default | bounds | meaning |", "|---|---|---|---|---|"]
    rows += [row(tables, block, field) for field in block.fields]
    return (f'<a id="{anchor(block.name)}"></a>\n\n{level} {title}\n\n{link_rules(tables, block.text)}\n\n'
            + "\n".join(rows) + "\n")


def row(tables, block, field):
    cells = (f"`{field['key']}`", type_of(tables, block, field), link_rules(tables, default(field)), bounds(field),
             link_rules(tables, field["text"]))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def type_of(tables, block, field):
    if "child" in field:
        inner = f"[map](#{anchor(field['child'].name)})"
        return {"block": inner, "blocks": f"list of [maps](#{anchor(field['child'].name)})",
                "block_map": f"map of [maps](#{anchor(field['child'].name)})"}[field["type"]]
    if field["type"] == "raw":
        owner = block.paths[0]
        of = [tables.options[o, word] for o, word in tables.options
              if o == ("senders[]" if owner == "bindings[]" else owner)]
        if not of or field["key"] not in ("options", "config"):
            return "any"
        return "map: " + ", ".join(f"[{b.kind}](#{anchor(b.name)})" for b in of)
    name = {"text": "text", "bool": "boolean", "int": "integer", "number": "number", "duration": "duration",
            "texts": "list of texts", "text_map": "map of texts", "word": "word"}[field["type"]]
    if field["type"] == "word":
        name = ", ".join(f"`{word['name']}`" for word in field["words"])
        name += " (any case)" if field["any_case"] else ""
    return name + (" or text with commas" if field["commas"] else "") + (", secret" if field["secret"] else "")


def default(field):
    if field["default_text"]:
        return field["default_text"]
    if field["required"]:
        return "required"
    kind = field["type"]
    if kind == "word":
        return next((f"`{w['name']}`" for w in field["words"] if w["value"] == field["def"]), "")
    return {"text": lambda: f"`{field['text_def']}`" if "text_def" in field else "",
            "bool": lambda: "true" if field["def"] else "false",
            "int": lambda: str(field["def"]),
            "number": lambda: f"{field['num_def']:g}",
            "duration": lambda: f"`{durations.text(field['def'])}`"}.get(kind, lambda: "")()


def bounds(field):
    low, high, kind = field["min"], field["max"], field["type"]
    zero = ", 0 = default" if field["zero_default"] else ""
    if kind == "number":
        return f"{field['num_min']:g} to {field['num_max']:g}"
    if kind == "int":
        if low < 0:
            return zero.lstrip(", ")
        return (f"{low} to {high}" if high < durations.INT64_MAX else f"from {low}") + zero
    if kind != "duration":
        return ""
    if low < 0:
        return "also negative" + zero
    most = f" to `{durations.text(high)}`" if high < durations.INT64_MAX else ""
    off = ", or `off`" if field["off"] else ""
    return (f"above `0s`{most}" if low else f"from `0s`{most}") + zero + off


def mentions(tables):
    """{rule: blocks whose text names it}."""
    found = {}
    for block in tables.blocks:
        texts = [block.text] + [field["text"] for field in block.fields]
        for name in dict.fromkeys(re.findall(r"`([A-Z]\d+)`", " ".join(texts))):
            found.setdefault(name, []).append(block)
    return found


def rules(tables):
    places, lines = mentions(tables), []
    groups = {}
    for rule in tables.rules:
        groups.setdefault(re.sub(r"\d+$", "", rule["name"]), []).append(rule)
    for group, members in groups.items():
        lines += [f"**{group}**: {RULE_GROUPS.get(group, 'further rules')}", "",
                  "| rule | it asks that | keys |", "|---|---|---|"]
        for rule in members:
            links = ", ".join(f"[`{b.paths[0]}`](#{anchor(b.name)})" for b in places.get(rule["name"], []))
            asks = rule["asks"].replace("|", "\\|")
            lines.append(f'| <a id="{anchor("rule " + rule["name"])}"></a>`{rule["name"]}` | {asks} | {links} |')
        lines.append("")
    return "\n".join(lines).rstrip()


def example(path):
    """The file without its lines for the editor."""
    text = (ROOT / path).read_text(encoding="utf-8")
    text = re.sub(r"^# yaml-language-server:.*\n", "", text, flags=re.M)
    return f"[{path}](../{path})\n\n```yaml\n{text.rstrip()}\n```"
