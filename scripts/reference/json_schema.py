"""docs/gobridge.schema.json from the tables. Draft 7, which editors know best. It says what the decoder says
(rules K1 to K7); what needs more than one place of the document is left to the program."""
import durations

NONE = {"$ref": "#/definitions/none"}
DURATIONS = {  # (low, high) -> definition
    (0, durations.INT64_MAX): "duration",
    (1, durations.INT64_MAX): "positive_duration",
    (durations.INT64_MIN, durations.INT64_MAX): "signed_duration",
}


def write(tables):
    definitions = {
        "none": {"description": "Nothing is written; the default holds.", "type": ["string", "null"], "maxLength": 0}}
    for (low, high), name in DURATIONS.items():
        definitions[name] = duration(low, high)
    for (owner, word), block in tables.options.items():
        definitions.setdefault(definition_name(block), map_of(tables, block, f"{owner}.options"))
    return {"$schema": "http://json-schema.org/draft-07/schema#",
            "title": "gobridge document",
            **map_of(tables, tables.root, ""),
            "definitions": definitions}


def definition_name(block):
    return block.name.replace("[]", "").replace(".<name>", "").replace(" (", ".").rstrip(")")


def duration(low, high):
    most = "" if high == durations.INT64_MAX else f" up to {durations.text(high)}"
    least = {0: "", 1: " above zero"}.get(low, ", also negative")
    return {"type": ["string", "null"], "pattern": durations.pattern(low, high),
            "patternErrorMessage": f"write a duration{least}{most}, such as 30s, 1m30s or 500ms"}


def map_of(tables, block, path, must_be=False):
    """`must_be`: null is no way to leave it out."""
    required = [f["key"] for f in block.fields if f["required"]]
    properties = {}
    for field in block.fields:
        value = {"description": describe(field), **value_of(tables, field)}
        for key in keys_of(block, field):
            properties[key] = value
    result = {"type": "object" if must_be else ["object", "null"],
              "description": plain(block.text), "properties": properties, "additionalProperties": False}
    if required:
        result["required"] = required
    choices = option_choices(tables, path)
    if choices:
        result["allOf"] = choices
    return result


def keys_of(block, field):
    """maxPayloadBytes is also max_payload_bytes."""
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in field["key"])
    return [field["key"]] if not block.camel or snake == field["key"] else [field["key"], snake]


def plain(text):
    return text.replace("`", "")


def describe(field):
    default = plain(field["default_text"] or "")
    if default.startswith("required"):
        return f"{plain(field['text'])} R{default[1:]}."
    return plain(field["text"]) + (f" Default: {default}." if default else "")


def value_of(tables, field):
    made = {"text": text_value, "bool": bool_value, "int": int_value, "number": number_value,
            "duration": duration_value, "word": word_value, "raw": raw_value}.get(field["type"])
    if made:
        return made(field)
    if field["type"] == "texts":
        return texts_value(tables, field)
    if field["type"] == "text_map":
        return {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"], **no_marker(field)},
                "maxProperties": tables.list_max}
    if field["type"] == "block":
        return {**map_of(tables, field["child"], field["path"], field["required"]), "description": describe(field)}
    entry = map_of(tables, field["child"], field["path"], any(f["required"] for f in field["child"].fields))
    if field["type"] == "blocks":
        return {"type": ["array", "null"], "items": entry, "maxItems": tables.list_max}
    return {"type": ["object", "null"], "additionalProperties": entry, "maxProperties": tables.list_max}


def default_of(field, value):
    return {} if field["default_text"] or field["required"] else {"default": value}


def no_marker(field):
    """What stands for a secret in a document from the API is none."""
    return {"not": {"const": "[REDACTED]"}} if field["secret"] else {}


def text_value(field):
    if field["required"]:
        return {"type": "string", "minLength": 1, **no_marker(field)}
    default = default_of(field, field["text_def"]) if "text_def" in field else {}
    return {"type": ["string", "null"], **no_marker(field), **default}


def bool_value(field):
    return {"type": ["boolean", "null"], **default_of(field, field["def"] != 0)}


def int_value(field):
    return {"type": ["integer", "null"], "minimum": field["min"], "maximum": field["max"],
            **default_of(field, field["def"])}


def number_value(field):
    return {"type": ["number", "null"], "minimum": field["num_min"], "maximum": field["num_max"],
            **default_of(field, field["num_def"])}


def duration_value(field):
    bounds = field["min"], field["max"]
    value = {"$ref": f"#/definitions/{DURATIONS[bounds]}"} if bounds in DURATIONS else duration(*bounds)
    if field["off"]:
        return {"anyOf": [{"enum": ["off"]}, value]}
    default = default_of(field, durations.text(field["def"]))
    return {**({"allOf": [value]} if "$ref" in value else value), **default}


def word_value(field):
    names = [word["name"] for word in field["words"]]
    ways = [{"enum": names}]
    if field["any_case"]:
        spelled = "|".join("".join(f"[{c.upper()}{c}]" for c in name) for name in names)
        ways.append({"type": "string", "pattern": f"^({spelled})$"})
    if field["required"]:
        return ways[0] if len(ways) == 1 else {"anyOf": ways}
    default = next((word["name"] for word in field["words"] if word["value"] == field["def"]), None)
    return {"anyOf": [*ways, NONE], **(default_of(field, default) if default else {})}


def texts_value(tables, field):
    value = {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}, "maxItems": tables.list_max}
    if field["commas"]:
        part = "[^,]*[^, \\t][^,]*"
        value |= {"type": ["array", "string", "null"],
                  "pattern": f"^({part}(,{part}){{0,{tables.list_max - 1}}})?$"}
    return value


def raw_value(_field):
    return {}


def option_choices(tables, owner):
    """Which table reads the options, by the word beside them."""
    if owner == "bindings[]":  # the sender's, which is elsewhere in the document
        senders = [{"$ref": f"#/definitions/{definition_name(block)}"}
                   for (of, _), block in tables.options.items() if of == "senders[]"]
        return [{"properties": {"options": {"anyOf": senders}}}]
    choices = []
    for (of, word), block in tables.options.items():
        if of != owner or owner == "receivers[].topics[]":
            continue
        word_key, options_key = tables.selector(owner)
        then = {"properties": {options_key: {"$ref": f"#/definitions/{definition_name(block)}"}}}
        if any(f["required"] for f in block.fields):  # what an absent block lacks, it lacks (spec 01 §2)
            then["required"] = [options_key]
            then["properties"][options_key] = {"type": "object", "allOf": [then["properties"][options_key]]}
        topic = tables.options.get((f"{owner}.topics[]", word))
        if topic:
            item = {"properties": {"options": {"$ref": f"#/definitions/{definition_name(topic)}"}}}
            then["properties"]["topics"] = {"items": item}
        choices.append({"if": selected_by(tables, owner, word_key, word), "then": then})
    return choices


def selected_by(tables, owner, word_key, word):
    names = aliases(tables, owner, word_key, word)
    written = {"properties": {word_key: {"enum": names}}, "required": [word_key]}
    if owner not in ("receivers[]", "senders[]") or word != "mqtt":
        return written
    # Without a transport it is the session's, and MQTT is the only one that has sessions.
    inherited = {"properties": {word_key: NONE, "session_id": {"type": "string", "minLength": 1}},
                 "required": ["session_id"]}
    return {"anyOf": [written, inherited]}


def aliases(tables, owner, word_key, word):
    block = next(b for b in tables.blocks if owner in b.paths and not b.kind)
    words = next(f["words"] for f in block.fields if f["key"] == word_key)
    value = next(w["value"] for w in words if w["name"] == word)
    return [w["name"] for w in words if w["value"] == value]
