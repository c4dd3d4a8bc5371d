"""docs/gobridge.schema.json says what the decoder says: on stored documents, on every key, on 6,000 random documents.

GB_VERDICTS names the program that asks the decoder (default build/bin/decode_verdicts); GB_SEED repeats a run.
"""
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import time

import pytest
import yaml

jsonschema = pytest.importorskip("jsonschema")

import rig

PROGRAM = pathlib.Path(os.environ.get("GB_VERDICTS", rig.ROOT / "build/bin/decode_verdicts"))
SCHEMA = json.loads((rig.ROOT / "docs/gobridge.schema.json").read_text(encoding="utf-8"))
REFERENCE = (rig.ROOT / "docs/configuration.md").read_text(encoding="utf-8")
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
EXAMPLES = sorted((rig.ROOT / "examples").glob("*.yaml"))
STORED = EXAMPLES + sorted((rig.ROOT / "tests/fuzz/corpus/blueprint").iterdir())
VALID, MUTATED = 2000, 4000


class EditorLoader(yaml.SafeLoader):
    """YAML 1.2, as editors read it: off and yes are texts."""


EditorLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in ("tag:yaml.org,2002:null",)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
for tag, pattern, first in (("bool", r"true|false", "tf"), ("int", r"-?[0-9]+", "-0123456789"),
                            ("float", r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", "-0123456789")):
    EditorLoader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^({pattern})$"), list(first))


def decoder_verdicts(documents):
    """For each document "ok" or the first finding."""
    assert PROGRAM.exists(), f"{PROGRAM} does not exist: build the target decode_verdicts"
    lines = "".join(json.dumps(document) + "\n" for document in documents)
    run = subprocess.run([PROGRAM], input=lines, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    verdicts = run.stdout.splitlines()
    assert len(verdicts) == len(documents)
    return verdicts


# --- stored documents -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_validate(path):
    """Those of the reference without a warning."""
    strict = ["-strict"] if f"(../examples/{path.name})\n" in REFERENCE else []
    run = subprocess.run([rig.BRIDGE, "-config", path, "-validate", *strict], capture_output=True, text=True,
                         timeout=30)
    assert run.returncode == 0, run.stderr
    assert path.read_text().startswith("# yaml-language-server: $schema=../docs/gobridge.schema.json\n")


def test_the_reference_has_four_examples():
    assert REFERENCE.count("(../examples/") >= 4
    assert REFERENCE.count("```yaml\n") == 4


def test_schema_accepts_the_stored_documents_that_the_decoder_accepts():
    run = subprocess.run([PROGRAM, *STORED], capture_output=True, text=True, timeout=60, check=True)
    verdicts = run.stdout.splitlines()
    assert len(verdicts) == len(STORED)
    accepted = [path for path, verdict in zip(STORED, verdicts) if verdict == "ok"]
    assert set(EXAMPLES) <= set(accepted)
    assert len(accepted) >= len(EXAMPLES) + 5
    for path in accepted:
        document = yaml.load(path.read_bytes(), EditorLoader)
        assert [error.message for error in VALIDATOR.iter_errors(document)] == [], path.name


# --- what the schema can't say ----------------------------------------------------------------------

DURATION = re.compile(r'"([-+]?(?:[0-9]*\.?[0-9]*(?:ns|us|ms|s|m|h))+)"')


def number_spelled_otherwise(_document, finding, _errors):
    return "whole number without fraction or exponent" in finding


def duration_adds_up(_document, finding, _errors):
    shown = DURATION.search(finding)
    return bool(shown) and bool(re.search(r"\.|[a-z]\d", shown[1])) and (
        "the longest is" in finding or "is out of range" in finding)


def below_a_nanosecond(_document, finding, errors):
    texts = [finding] if finding != "ok" else [json.dumps(error.instance) for error in leaves(errors)]
    shown = [DURATION.search(text) for text in texts]
    return any(found and re.fullmatch(r"[-+]?(0*\.?0*[a-z]+)*0*\.[0-9]+[a-z]+", found[1]) for found in shown)


def options_of_a_binding(_document, finding, errors):
    if finding != "ok":
        return re.search(r"bindings\[\d+\].*[ \"]options", finding) is not None
    return bool(errors) and all(
        list(e.absolute_path)[:1] + list(e.absolute_path)[2:3] == ["bindings", "options"] for e in errors)


def session_is_not_defined(document, finding, errors):
    sessions = [s.get("id") for s in document.get("sessions") or [] if isinstance(s, dict)]

    def is_lost(section, index, *keys):
        entry = document[section][index]
        return section in ("receivers", "senders") and "options" in (keys[0], *keys[2:3]) \
            and not entry.get("transport") and entry.get("session_id") not in sessions

    places = [list(error.absolute_path) for error in errors]
    return finding == "ok" and bool(places) and all(len(place) > 2 and is_lost(*place) for place in places)


def leaves(errors):
    for error in errors:
        yield from leaves(error.context) if error.context else [error]


# name: (why, a document on which they differ, who accepts it)
BEYOND = {
    number_spelled_otherwise: ("JSON Schema takes 1.0 and 1e3 for whole numbers", {"version": 1.0}, "schema"),
    duration_adds_up: ("a pattern can't add up the parts of a duration, nor round its fraction",
                       {"bridge": {"shutdown_timeout": "2562047h47m17s"}}, "schema"),
    below_a_nanosecond: ("a pattern can't round to nanoseconds", {"bridge": {"shutdown_timeout": "0.1ns"}}, "schema"),
    options_of_a_binding: ("its sender, elsewhere in the document, decides the table",
                           {"senders": [{"id": "s", "transport": "sqs"}],
                            "bindings": [{"id": "b", "sender_id": "s", "address": "a", "options": {"path": "/x"}}]},
                           "schema"),
    session_is_not_defined: ("rule V5 refuses it; until then nobody knows the transport",
                             {"receivers": [{"id": "r", "session_id": "s", "options": {"queue_name": "q"}}]},
                             "decoder"),
}


@pytest.mark.parametrize("row", BEYOND, ids=lambda row: row.__name__)
def test_what_the_schema_cannot_say(row):
    _, document, who = BEYOND[row]
    [finding] = decoder_verdicts([document])
    errors = list(VALIDATOR.iter_errors(document))
    assert (finding == "ok", not errors) == ((True, False) if who == "decoder" else (False, True))
    assert row(document, finding, errors)


# --- generated documents ----------------------------------------------------------------------------

DURATIONS = ["0", "-0", "+0", "0s", "-0s", "+1s", "1ns", "-1ns", "1s", "2s", "30s", "1m30s", "500ms", "1.5s", ".5s",
             "5.s", ".s", "s", "1", "1 s", "1S", "1d", "1e3s", "0.1ns", "-0.1ns", "00012s", "24h", "9m59s", "10m",
             "10m0s", "10m1ns", "600s", "600.0s", "600.5s", "601s", "999ms", "1000ms", "1001ms", "2562047h", "2562048h",
             "2562047.1h", "153722867m", "153722868m", "9223372036s", "9223372037s", "9223372036854ms",
             "9223372036855ms", "9223372036854775us", "9223372036854775807ns", "9223372036854775808ns",
             "-9223372036854775808ns", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "off", "Off"]
EDGES = [edge + step for edge in (0, 2**31, 2**32, 2**53, 2**63, -2**31, -2**63) for step in (-1, 0, 1)]
VALUES = [None, "", "[REDACTED]", "x", "X", "a,b", ",", " ", "true", "5", True, False, 0.5, -0.5, 1.0, 1e3, 1e308, [],
          {}, [None], [""], ["a"], [1], [[]], [{}], {"a": None}, {"a": "b"}, {"a": "[REDACTED]"}, {"a": 1}, {"a": {}}]
TEXTS = ["a", "b", "c", "1", "ä", "x/y", "true", "null"]


def bounds(schema):
    """Every number that the schema names as a bound."""
    if isinstance(schema, list):
        return [b for part in schema for b in bounds(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema[key] for key in ("minimum", "maximum") if isinstance(schema.get(key), int)]
    return own + [b for part in schema.values() for b in bounds(part)]


BOUNDS = sorted({bound + step for bound in bounds(SCHEMA) for step in (-1, 0, 1)})


class Generator:
    """Documents that the schema accepts, and the same with one place changed."""

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def chance(self, percent):
        return self.rng.randrange(100) < percent

    def document(self):
        made = self.value(SCHEMA, [])
        self.link(made if isinstance(made, dict) else {})
        return made

    def value(self, schema, path):
        while "$ref" in schema:
            schema = SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]]
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        if "anyOf" in schema:
            return self.value(self.rng.choice(schema["anyOf"]), path)
        if "type" not in schema and "allOf" in schema:
            return self.value(schema["allOf"][0], path)
        kinds = schema.get("type", ["string", "integer", "null", "boolean"])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if "null" in kinds and len(kinds) > 1:
            kinds = ["null"] if path and self.chance(5) else [kind for kind in kinds if kind != "null"]
        kind = self.rng.choice(kinds)
        return getattr(self, f"{kind}_")(schema, path)

    def null_(self, _schema, _path):
        return None

    def boolean_(self, _schema, _path):
        return self.chance(50)

    def integer_(self, schema, _path):
        low, high = schema.get("minimum", -2**63), schema.get("maximum", 2**63 - 1)
        return self.rng.choice([low, high, self.rng.randint(low, high), max(low, min(high, self.rng.randrange(100)))])

    def number_(self, schema, _path):
        return self.rng.choice([schema["minimum"], schema["maximum"],
                                self.rng.uniform(schema["minimum"], schema["maximum"])])

    def string_(self, schema, _path):
        if "pattern" not in schema:
            empty = [""] if schema.get("minLength", 0) == 0 else []
            return "" if schema.get("maxLength") == 0 else self.rng.choice(TEXTS + empty)
        words = [w for w in DURATIONS + ["", "a,b", " a ", "INFO", "Warning"] if re.search(schema["pattern"], w)]
        return self.rng.choice([word for word in words if not re.search(r"0\.1ns|7\.1h|808s", word)])

    def array_(self, schema, path):
        return [self.value(schema["items"], [*path, "[]"]) for _ in range(self.rng.randrange(3))]

    def object_(self, schema, path):
        known = schema.get("properties", {})
        made = {}
        for key, part in known.items():
            likely = 70 if not path else 60 if key in ("transport", "type", "session_id") else 25
            if key in ("options", "config"):
                continue  # the kind decides, below
            if key in schema.get("required", []) or self.chance(likely):
                made[key] = self.value(part, [*path, key])
        if isinstance(schema.get("additionalProperties"), dict):
            for _ in range(self.rng.randrange(3)):
                made[self.rng.choice(TEXTS)] = self.value(schema["additionalProperties"], [*path, "<name>"])
        for choice in schema.get("allOf", []):
            if "if" in choice and jsonschema.Draft7Validator({**choice["if"], **DEFINITIONS}).is_valid(made):
                self.choose(choice["then"], made, path)
        return made

    def choose(self, then, made, path):
        for key, part in then["properties"].items():
            if key == "topics":
                for topic in made.get("topics") or []:
                    if self.chance(50):
                        topic["options"] = self.value(part["items"]["properties"]["options"], [*path, "options"])
            elif key in then.get("required", []) or self.chance(70):
                inner = part["allOf"][0] if "allOf" in part else part
                made[key] = self.value(inner, [*path, key])
                if made[key] is None and "allOf" in part:
                    made[key] = self.object_(SCHEMA["definitions"][inner["$ref"].rsplit("/", 1)[1]], [*path, key])

    def link(self, document):
        """Ids that exist, nearly always."""
        sessions = [s["id"] for s in document.get("sessions") or []]
        for entry in (document.get("receivers") or []) + (document.get("senders") or []):
            if entry.get("session_id") and not self.chance(5):
                entry["session_id"] = self.rng.choice(sessions or [None])
                if entry["session_id"] is None and not entry.get("transport"):
                    entry.pop("options", None)

    def mutated(self):
        document = self.document()
        places = list(places_of(document))
        if not places:
            return {"bridge": self.rng.choice(VALUES)}
        parent, key = self.rng.choice(places)
        value = parent[key]
        change = self.rng.randrange(6)
        if change == 0 and isinstance(value, dict):
            value[self.rng.choice(["unknown", "Id", "", "id ", *(name + "s" for name in list(value)[:3])])] = "x"
        elif change == 1 and isinstance(parent, dict):
            del parent[key]
        elif change == 2 and isinstance(value, str):
            parent[key] = self.rng.choice([value + "x", value.upper(), value.capitalize(), f" {value}", value[:-1]])
        elif change == 3:
            parent[key] = self.rng.choice(DURATIONS)
        elif change == 4:
            parent[key] = self.rng.choice(BOUNDS + EDGES)
        else:
            parent[key] = copy.deepcopy(self.rng.choice(VALUES))
        return document


DEFINITIONS = {"definitions": SCHEMA["definitions"]}


def places_of(node):
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else []
    for key, value in list(items):
        yield node, key
        yield from places_of(value)


def resolve(schema):
    while "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def smallest(schema):
    """A value with nothing but what is required."""
    schema = resolve(schema)
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" not in schema:
        return "a"
    made = {key: smallest(schema["properties"][key]) for key in schema.get("required", [])}
    for choice in schema.get("allOf", []):
        if "if" in choice and jsonschema.Draft7Validator({**choice["if"], **DEFINITIONS}).is_valid(made):
            made |= {key: smallest(choice["then"]["properties"][key]["allOf"][0])
                     for key in choice["then"].get("required", [])}
    return made


def selections(choice, made):
    """The entry with each word that selects the options, and with a session to take it from."""
    for way in choice["if"].get("anyOf", [choice["if"]]):
        for key in way["required"]:
            for word in way["properties"][key].get("enum", ["a"]):
                yield {**made, key: word}


def every_place(schema, wrap):
    """(schema of a value, function that puts a value there into a document) for every key of the schema."""
    schema = resolve(schema)
    made = smallest(schema)
    for key, part in schema.get("properties", {}).items():
        yield from every_inner_place(part, lambda value, key=key: wrap({**made, key: value}))
    for choice in schema.get("allOf", []):
        for selected in selections(choice, made) if "if" in choice else []:
            for key, part in choice["then"]["properties"].items():
                if key == "topics":
                    part = part["items"]["properties"]["options"]
                    put = lambda value, base=selected: wrap({**base, "topics": [{"topic": "t", "options": value}]})
                else:
                    put = lambda value, base=selected, key=key: wrap({**base, key: value})
                yield from every_inner_place(part["allOf"][0] if "allOf" in part else part, put)


def every_inner_place(part, put):
    yield part, put
    part = resolve(part)
    if "items" in part:
        yield part["items"], lambda value: put([value])
        yield from every_place(part["items"], lambda value: put([value]))
    elif isinstance(part.get("additionalProperties"), dict):
        yield part["additionalProperties"], lambda value: put({"k": value})
        yield from every_place(part["additionalProperties"], lambda value: put({"k": value}))
    elif "properties" in part:
        yield from every_place(part, put)


def values_for(schema):
    """Of every type; the bounds and words of this place, and beside them."""
    schema = resolve(schema)
    ways = [resolve(way) for way in schema.get("anyOf", []) + schema.get("allOf", [])] + [schema]
    made = VALUES + [10**400] + [b + step for b in bounds(schema) for step in (-1, 0, 1)]
    for way in ways:
        words = [word for word in way.get("enum", []) if isinstance(word, str)]
        made += words + [word + "x" for word in words] + [word.upper() for word in words]
        made += DURATIONS if "pattern" in way else DURATIONS[:6]
    if "properties" in schema:
        least = smallest(schema)
        made += [least, {**least, "unknown": 1}]
        made += [{key: value for key, value in least.items() if key != gone} for gone in least]
        made += [{**least, key: nothing} for key in least for nothing in (None, "")]
    return [value for at, value in enumerate(made) if json.dumps(value) not in map(json.dumps, made[:at])]


def compare(documents):
    """How many the schema refuses, and on how many the two differ as BEYOND says; fails on any other difference."""
    refused, explained = 0, 0
    for number, (document, finding) in enumerate(zip(documents, decoder_verdicts(documents))):
        accepted = VALIDATOR.is_valid(document)
        refused += not accepted
        if accepted == (finding == "ok"):
            continue
        errors = list(VALIDATOR.iter_errors(document))
        explained += 1
        assert any(row(document, finding, errors) for row in BEYOND), (
            f"document {number}: decoder: {finding}; schema: "
            f"{[f'{e.json_path}: {e.message[:200]}' for e in errors] or 'ok'}\n{json.dumps(document)}")
    return refused, explained


def test_every_key_with_every_kind_of_value():
    documents, seen = [], set()
    for schema, put in every_place(SCHEMA, lambda document: document):
        for value in values_for(schema):
            document = put(value)
            text = json.dumps(document)
            if text not in seen:
                seen.add(text)
                documents.append(document)
    refused, _ = compare(documents)
    print(len(documents), "documents,", refused, "refused")
    assert len(documents) > 10000 and len(documents) / 4 < refused < len(documents)


def test_random_documents():
    seed = int(os.environ.get("GB_SEED", time.time_ns() % 2**32))
    print(f"GB_SEED={seed}")
    generator = Generator(seed)
    documents = [generator.document() for _ in range(VALID)] + [generator.mutated() for _ in range(MUTATED)]
    refused, explained = compare(documents)
    assert MUTATED / 4 < refused < MUTATED, "the changes hit something, the rest is valid"
    assert explained < len(documents) / 20, "the table is for exceptions"
