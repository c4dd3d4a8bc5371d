"""The normal form of a document (spec 01 §9.1, decision 0130) written a second time, without the tables of the
program, and random documents to compare both on.

A document is Python data; Duration and Number stand for values that have several spellings.
"""

import decimal
import hashlib
import json
import re

SECTIONS = ("sessions", "receivers", "senders", "bindings", "routes")


class Duration:
    """Of the model, so its spelling says nothing; whole milliseconds."""

    def __init__(self, ms):
        self.ms = ms

    def seconds(self, ms):
        return f"{ms // 1000}.{ms % 1000:03}".rstrip("0").rstrip(".") + "s"

    def canonical(self):
        if self.ms < 1000:
            return f"{self.ms}ms" if self.ms else "0s"
        minutes, rest = divmod(self.ms, 60_000)
        hours, minutes = divmod(minutes, 60)
        if hours:
            return f"{hours}h{minutes}m{self.seconds(rest)}"
        return f"{minutes}m{self.seconds(rest)}" if minutes else self.seconds(rest)

    def spelled(self, rng):
        return rng.choice([f"{self.ms}ms", f"{self.ms}000us", self.seconds(self.ms), self.canonical(),
                           f"{self.ms // 1000}s{self.ms % 1000}ms", f"+{self.ms}.0ms"])


class Number:
    def __init__(self, value):
        self.value = float(value)

    def spelled(self, rng):
        forms = [repr(self.value), f"{self.value:.17e}", f"{self.value:.18g}"]
        if self.value == int(self.value) and abs(self.value) < 2**53:
            forms.append(str(int(self.value)))
        return rng.choice([form for form in forms if float(form) == self.value])

    def canonical(self):
        """As ECMAScript prints it (ECMA-262, Number::toString)."""
        if self.value == 0:
            return "0"
        sign, digits, exponent = decimal.Decimal(repr(self.value)).as_tuple()
        digits = "".join(map(str, digits))
        exponent += len(digits) - len(digits.rstrip("0"))
        digits = digits.rstrip("0")
        k, n = len(digits), exponent + len(digits)
        if k <= n <= 21:
            text = digits + "0" * (n - k)
        elif 0 < n <= 21:
            text = digits[:n] + "." + digits[n:]
        elif -6 < n <= 0:
            text = "0." + "0" * -n + digits
        else:
            text = digits[0] + ("." + digits[1:] if k > 1 else "") + f"e{n - 1:+d}"
        return "-" * sign + text


def canonical(value):
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode())
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Duration):
        return canonical(value.canonical())
    if isinstance(value, Number):
        return value.canonical()
    return json.dumps(value, ensure_ascii=False)


def without_empty(value):
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_empty(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item is not None and item not in ({}, [], "")}


def digest(document):
    normal = without_empty(document)
    normal.pop("version", None)
    for key in ("drain_timeout", "shutdown_timeout"):
        normal["bridge"].setdefault(key, Duration(30_000))
    members = normal["bridge"].get("cluster", {}).get("members")
    if members:
        normal["bridge"]["cluster"]["members"] = sorted(set(members))
    for section in SECTIONS:
        if section in normal:
            normal[section] = sorted(normal[section], key=lambda entry: entry["id"].encode())
    return hashlib.sha256(canonical(normal).encode()).hexdigest()


# ---- random documents ----

TEXTS = ["a", "Ω", "\U0001f69a", 'quo"te', "back\\slash", "new\nline\ttab", "\x01\x1f\x7f", "true", "1e5", "null",
         "~", "- x", "a: b", "#c", "é", "\u2028", "yes", "off", " lead", "x" * 300]
ADDRESSES = [text for text in TEXTS if not any(c < " " or c == "\x7f" for c in text)]
VALUES = [0, 1, -7, 2**53 + 1, 10**25, 0.1, -2.5e-9, 1e21, 5e-324, 123456.75]


def condition_value(rng, kinds=3):
    """All numbers there are doubles."""
    return [rng.choice(TEXTS), Number(rng.choice(VALUES)), rng.choice([True, False])][rng.randrange(kinds)]


def condition(rng):
    operator = rng.choice(["eq", "ne", "in", "gt", "exists", "contains"])
    made = {"field": rng.choice(["subject", "header.x", "$.a.b", "bare"]), "operator": operator}
    if operator == "in":
        made["value"] = [condition_value(rng, 2) for _ in range(rng.randint(1, 4))]
    elif operator == "gt":
        made["value"] = Number(rng.choice(VALUES))
    elif operator == "contains":
        made["value"] = rng.choice(TEXTS)
    elif operator == "exists":
        made["value"] = rng.choice([True, False])
    else:
        made["value"] = condition_value(rng)
    return made


def some(rng, options):
    return {key: value for key, value in options.items() if rng.random() < 0.4}


def duration(rng, low=1):
    return Duration(rng.choice([low, 500, 1000, 1500, 30_000, 60_000, 90_000, 3_600_000, 5_400_001]))


def policy(rng):
    backoff = {"initial_interval": Duration(1000), "max_interval": Duration(61_000),
               "multiplier": Number(rng.choice([1, 2, 2.5, 1.1])), "jitter": Number(rng.choice([0, 0.1, 1]))}
    return some(rng, {"max_in_flight": rng.randint(1, 200), "replay_budget": duration(rng),
                      "send_timeout": Duration(rng.choice([1000, 1500, 30_000])), "max_outbox_depth": rng.randint(1, 99),
                      "depth_cache_ttl": duration(rng), "on_filtered": rng.choice(["drop", "dlq"]),
                      "backoff": some(rng, backoff)})


def document(rng):
    ids = rng.sample(["a", "b", "ab", "Z", "é", "0", "10", "a.b"], rng.randint(1, 4))
    made = {"bridge": {"id": "b"}, "version": rng.randrange(2**62)}
    made["bridge"] |= some(rng, {"drain_timeout": duration(rng), "shutdown_timeout": duration(rng),
                                 "log_level": rng.choice(["WARN", "warn", "Info"]),
                                 "cluster": {"members": rng.sample(["m", "n", "o"], 2)}})
    made["stores"] = {role: {"type": "sqlite", "options": {"path": f"/data/{role}.db"}}
                      for role in ("outbox", "dlq", "managed_subscriptions")}
    made["stores"]["dlq"] |= some(rng, {"auto_redrive_window": duration(rng)})
    made["processors"] = {"p": {"type": "transform", "config": {"name": rng.choice(TEXTS), "mappings": [
        {"source": rng.choice(["$.a", "$.b.c"]), "target": "t", "defaultValue": rng.choice([*TEXTS, 2**53 + 1, 10**30, True])}]}},
        "q": {"type": "filter", "config": {"conditions": [condition(rng)], "maxPayloadBytes": rng.randint(1, 2**31 - 1)}}}
    for section in SECTIONS:
        made[section] = []
    for number, name in enumerate(ids):
        options = some(rng, {"keep_alive": rng.randrange(100), "connect_timeout": rng.choice(["90s", "1m30s"]),
                             "clean_start": False, "tls": {}, "username": None})
        made["sessions"].append({"id": name, "transport": "mqtt", "session_mode": "persistent", "options": {
            "session": {"broker_url": f"tcp://broker{number}", "client_id": f"c-{number}", **options}}})
        made["receivers"].append({"id": name, "session_id": name, "topics": [
            {"topic": topic, "qos": 1} for topic in rng.sample(["x", "y/+", "z/#"], rng.randint(1, 3))]})
        made["senders"].append({"id": name, "transport": "sqs", "options": {
            "queue_name": f"q{number}", **some(rng, {"batch_size": rng.randint(0, 10), "linger": "5ms"})}})
        bindings = [f"{name}-{i}" for i in range(rng.randint(1, 3))]
        made["bindings"] += [{"id": i, "sender_id": name, "address": rng.choice(ADDRESSES)} for i in bindings]
        rng.shuffle(bindings)
        route = {"id": name, "receiver_id": name, "delivery_mode": "shared_outbox", "bindings": bindings,
                 "policy": policy(rng)}
        if rng.random() < 0.5:
            route["resolver"] = {"type": "rules", "default_binding": bindings[0], "rules": [
                {"binding_id": bindings[0], "match": [condition(rng) for _ in range(rng.randrange(3))]}]}
        route |= some(rng, {"processors": rng.sample(["p", "q"], rng.randint(0, 2)), "dispatch_mode": "single"})
        made["routes"].append(route)
    return made


# ---- spellings ----

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.-]*")
WORDS = re.compile(r"(?i)true|false|null|nan|inf")


def text_in_yaml(text, rng):
    if PLAIN.fullmatch(text) and not WORDS.fullmatch(text) and rng.random() < 0.7:
        return text
    quoted = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f").replace("\u2028", "\\u2028")
    return quoted.replace("é", "\\xe9").replace("\U0001f69a", "\\U0001F69A") if rng.random() < 0.5 else quoted


def scalar(value, rng, text):
    if isinstance(value, Number):
        return value.spelled(rng)
    if isinstance(value, Duration):
        return text(value.spelled(rng), rng)
    if isinstance(value, str):
        return text(value, rng)
    return json.dumps(value)


def shuffled(value, rng, path=()):
    """Keys in any order, and entries where their order says nothing."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, rng, (*path, key))) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        items = [shuffled(item, rng, (*path, "[]")) for item in value]
        if path in [(section,) for section in SECTIONS] or path[-1:] == ("members",):
            rng.shuffle(items)
        return items
    return value


def as_json(value, rng, text=lambda text, rng: json.dumps(text, ensure_ascii=rng.random() < 0.5)):
    blank = rng.choice(["", " ", "\n  "])
    if isinstance(value, dict):
        inner = f",{blank}".join(f"{text(key, rng)}: {as_json(item, rng, text)}" for key, item in value.items())
        return "{" + blank + inner + "}"
    if isinstance(value, list):
        return "[" + f",{blank}".join(as_json(item, rng, text) for item in value) + "]"
    return scalar(value, rng, text)


def as_yaml(value, rng, indent=0):
    """Block style outside, flow style inside, as people write it."""
    pad = "  " * indent
    if isinstance(value, dict) and value and indent < 4:
        lines = []
        for key, item in value.items():
            nested = isinstance(item, (dict, list)) and item and rng.random() < 0.8
            inner = "\n" + as_yaml(item, rng, indent + 1) if nested else " " + flow(item, rng) + "\n"
            lines.append(f"{pad}{text_in_yaml(key, rng)}:{inner}")
        return "".join(lines)
    if isinstance(value, list) and value and indent < 4:
        return "".join(f"{pad}- {flow(item, rng)}\n" for item in value)
    return f"{pad}{flow(value, rng)}\n"


def flow(value, rng):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_in_yaml(key, rng)}: {flow(item, rng)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, rng) for item in value) + "]"
    return scalar(value, rng, text_in_yaml)
