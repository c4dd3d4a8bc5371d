"""Hostile documents: what a reader of YAML and JSON has to fear, each made on demand.

`DOCUMENTS` maps a name to (extension, maker, what must come of it). The maker answers bytes; the outcome is `OK`
(accepted, warnings allowed), `NO` (refused, with a finding that has line and column) or the text of a finding.
`python3 tests/e2e/hostile.py FOLDER` writes the small ones as seeds of the fuzz target.
"""

import json
import pathlib
import sys

LIMIT = 4194304  # spec 01 §2
OK, NO = "accepted", "refused"
BRIDGE = "bridge: {id: x}\n"


def fill(unit, head="", tail="", size=LIMIT):
    """`unit` repeated until the document has nearly `size` bytes; it may hold {} for a running number."""
    room = size - len(head.encode()) - len(tail.encode())
    if "{}" not in unit:
        return (head + unit * (room // len(unit.encode())) + tail).encode()
    parts, used, number = [], 0, 0
    while True:
        part = unit.replace("{}", str(number))
        used += len(part)
        if used > room:
            return (head + "".join(parts) + tail).encode()
        parts.append(part)
        number += 1


# --- valid documents of any size --------------------------------------------------------------------


def base(**sections):
    return {"bridge": {"id": "x"}, **sections}


def dump(doc):
    return json.dumps(doc, separators=(",", ":")).encode()


def queue(name, **more):
    return {"id": name, "transport": "sqs", "options": {"queue_name": "q", **more}}


def direct(number, bindings, **more):
    return {"id": f"r{number}", "receiver_id": "in", "bindings": bindings, **more}


def routes(count, bindings_each=1, bindings=1, **more):
    """`count` routes from one queue over the same bindings."""
    names = [f"b{i}" for i in range(bindings)]
    return base(receivers=[queue("in")], senders=[queue("out")],
                bindings=[{"id": n, "sender_id": "out", "address": "a"} for n in names],
                routes=[direct(i, names[:bindings_each], **more) for i in range(count)])


def mqtt(number, **options):
    return {"id": f"s{number}", "transport": "mqtt",
            "options": {"session": {"broker_url": "tcp://b", "client_id": f"c{number}", **options}}}


def sessions(count):
    """Each with receiver, sender, binding and route of its own."""
    many = range(count)
    return base(sessions=[mqtt(i) for i in many],
                receivers=[{"id": f"i{i}", "session_id": f"s{i}", "topics": [{"topic": "t"}]} for i in many],
                senders=[{"id": f"o{i}", "session_id": f"s{i}"} for i in many],
                bindings=[{"id": f"b{i}", "sender_id": f"o{i}", "address": "a"} for i in many],
                routes=[{"id": f"r{i}", "receiver_id": f"i{i}", "bindings": [f"b{i}"]} for i in many])


def loops(topics, bindings):
    """W3: every address is held against every topic of its session, and the last one matches."""
    filters = [f"+/+/+/+/+/+/+/{i}" for i in range(topics - 1)] + ["#"]
    return base(sessions=[mqtt(0)], receivers=[{"id": "i", "session_id": "s0",
                                               "topics": [{"topic": t} for t in filters]}],
                senders=[{"id": "o", "session_id": "s0"}],
                bindings=[{"id": f"b{i}", "sender_id": "o", "address": f"a/a/a/a/a/a/a/a/{i}"} for i in range(bindings)],
                routes=[{"id": "r", "receiver_id": "i", "bindings": [f"b{i}" for i in range(bindings)],
                         "policy": {"allow_retry_drop": True}}])


def routes_with_names(count):
    doc = routes(count)
    for i, route in enumerate(doc["routes"]):
        route["processors"] = [f"{i}p{j}" for j in range(10000)]
    return doc


def sections(count):
    """The shortest entries that are accepted."""
    many = range(count)
    return base(sessions=[mqtt(i) for i in many], receivers=[queue(f"i{i}") for i in many],
                senders=[queue(f"o{i}") for i in many],
                bindings=[{"id": f"b{i}", "sender_id": f"o{i}", "address": "a"} for i in many],
                routes=[{"id": f"r{i}", "receiver_id": f"i{i}", "bindings": [f"b{i}"]} for i in many],
                processors={f"p{i}": {"type": "tenant"} for i in many})


def brokers(count, each):
    """P6: every address of a session is held against those of all others."""
    doc = base(sessions=[mqtt(i) for i in range(count)])
    for i, session in enumerate(doc["sessions"]):
        session["options"]["session"].update(broker_urls=[f"b{i}:{j + 1}" for j in range(each)], client_id="c")
    return doc


def rules(count, operator, value):
    doc = routes(1)
    doc["routes"][0]["resolver"] = {"type": "rules", "rules": [
        {"binding_id": "b0", "match": [{"field": "subject", "operator": operator, "value": value}]}
        for _ in range(count)]}
    return doc


def cadences(count):
    """P3: every route writes a lease cadence for the same session."""
    doc = sessions(1)
    doc["stores"] = {r: {"type": "sqlite", "options": {"path": f"/x/{r}"}} for r in ("lease", "outbox", "dlq")}
    doc["stores"]["managed_subscriptions"] = {"type": "sqlite", "options": {"path": "/x/s"}}
    doc["receivers"] += [queue("in")]
    doc["routes"] += [direct(f"x{i}", ["b0"], session={"session_id": "s0", "sender_id": "o0",
                                                       "lease_ttl": f"{300 + i}s"}) for i in range(count)]
    return doc


def pad(doc, size=LIMIT):
    """Exactly `size` bytes, by white space."""
    text = dump(doc)
    return text + b" " * (size - len(text))


def values(count):
    """`count` values below one key of the root, whose own three are included."""
    return ("bridge: {id: x}\nx: [" + "~," * (count - 4) + "]\n").encode()


# --- aliases ----------------------------------------------------------------------------------------


def laughs(levels, width):
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return ("\n".join(lines) + "\n").encode()


# --- numbers ----------------------------------------------------------------------------------------

EDGES = [0, 1, -1, 2**31 - 1, 2**31, -2**31, -2**31 - 1, 2**32 - 1, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63,
         -2**63, -2**63 - 1, 2**64 - 1, 2**64, 2**64 + 1, -2**64, 10**19, 10**400, -10**400]
WHOLE = {"version": (0, 2**63 - 1), "bridge.cluster.locator.breaker_failures": (0, 2**31 - 1),
         "bridge.cluster.forwarder.max_retries": (0, 100)}
SHAPES = ["1.0", "1e3", "1e400", "+1", "01", "0x10", "0o7", "1_000", ".5", "5.", "1e", "NaN", "Infinity", "- 1",
          ".inf", ".nan", "1" * 100000]


def written(path, text):
    """A small document with `text`, as it is, at `path`."""
    doc = base()
    at = doc
    *way, last = path.split(".")
    for key in way:
        at = at.setdefault(key, {})
    at[last] = "@"
    return dump(doc).replace(b'"@"', text.encode())


def numbers():
    for path, (least, most) in WHOLE.items():
        for n in EDGES:
            yield f"{path} {shown(n)}", written(path, str(n)), OK if least <= n <= most else NO
        for text in SHAPES:
            yield f"{path} {text[:12]}", written(path, text), NO
    for path in ("bridge.shutdown_timeout", "config_watch.debounce"):
        for n in EDGES:
            yield f"{path} {shown(n)}", written(path, str(n)), NO  # a duration has a unit


def shown(n):
    return str(n) if abs(n) < 2**70 else f"{len(str(n))} digits"


def durations():
    """Every unit at the edge of 64 bits of nanoseconds."""
    for unit, ns in (("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9), ("m", 60 * 10**9), ("h", 3600 * 10**9)):
        most = (2**63 - 1) // ns
        for n, outcome in ((most, OK), (most + 1, NO), (2**64 // ns + 1, NO), (-1, NO)):
            yield f"{n}{unit}", written("config_watch.poll_interval", f'"{n}{unit}"'), outcome


# --- the table --------------------------------------------------------------------------------------

TEXT = '"' + "x" * 1000 + '"'


FORMS = {  # the same bytes as JSON and as YAML
    "4 MiB of [": (lambda: fill("["), "nested deeper"),
    "4 MiB of {": (lambda: fill('{"a":'), "nested deeper"),
    "depth 10000": (lambda: b'{"a":' + b"[" * 10000 + b"]" * 10000 + b"}", "nested deeper"),
    "short list entries": (lambda: fill("0,", "[", "0]"), "needs more memory"),
    "short lists": (lambda: fill("[],", "[", "[]]"), "more than"),
    "short maps": (lambda: fill("{},", "[", "{}]"), "needs more memory"),
    "distinct keys": (lambda: fill('"k{}":0,', "{", '"z":0}'), NO),
    "one key 300000 times": (lambda: fill('"k":0,', "{", '"k":0}'), NO),
    "maps of one key": (lambda: fill('{"a":0},', '{"x":[', "0]}"), NO),
    "maps of seventeen keys": (lambda: fill("{" + ",".join(f'"{i:x}":0' for i in range(17)) + "},", '{"x":[', "0]}"), NO),
    "long key": (lambda: fill("k", '{"', '":0}'), NO),
    "two long keys": (lambda: fill("k", '{"', '":0,"' + "k" * (LIMIT // 2 - 10) + '":0}'), NO),
    "long text": (lambda: fill("x", '{"bridge":{"id":"x","instance_id":"', '"}}'), NO),
    "long texts": (lambda: fill(TEXT + ",", '{"bridge":{"id":"x","cluster":{"members":[', '"y"]}}}'), NO),
    "escapes": (lambda: fill("\\u0041", '{"bridge":{"id":"', '"}}'), NO),
    "escapes of three bytes": (lambda: fill("\\u20AC", '{"bridge":{"id":"', '"}}'), NO),
    "escapes in keys": (lambda: fill('"\\u0041{}":0,', "{", '"z":0}'), NO),
    "escaped NUL": (lambda: b'{"bridge":{"id":"\\u0000"}}', NO),
    "quotes that do not end": (lambda: fill("x", '{"a":"'), NO),
    "many bad lines": (lambda: fill('"k":\n', "{"), NO),
    "unknown keys": (lambda: fill('"shutdown_timoutt{}":0,', '{"bridge":{', '"id":"x"}}'), NO),
    "unknown keys in sessions": (lambda: fill('{"idd":1,"transportt":2,"session_mod":3},', '{"bridge":{"id":"x"},"sessions":[', "{}]}"), NO),
    "empty entries of each section": (lambda: dump({s: [{}] * 10000 for s in ("sessions", "receivers", "senders", "bindings", "routes")}), NO),
    "empty routes": (lambda: dump(base(routes=[{}] * 10000)), NO),
    "one more route than accepted": (lambda: dump(base(routes=[{}] * 10001)), "at most 10000"),
    "sessions with all they need": (lambda: pad(sessions(5500)), NO),
    "routes": (lambda: dump(routes(10000)), OK),
    "routes with a policy": (lambda: dump(routes(10000, policy={"backoff": {"jitter": 0.1}, "max_in_flight": 7})), OK),
    "routes with many bindings": (lambda: dump(routes(20, 8000, 8000)), OK),
    "routes with more bindings": (lambda: dump(routes(60, 8000, 8000)), "needs more memory"),
    "routes with distinct processors": (lambda: dump(routes_with_names(25)), NO),
    "all sections full": (lambda: dump(sections(10000)), "needs more memory"),
    "all sections half full": (lambda: dump(sections(5000)), OK),
    "brokers of many sessions": (lambda: dump(brokers(30, 10000)), "20000 are accepted in a document; name fewer"),
    "one route, 10000 bindings": (lambda: dump(routes(1, 10000, 10000)), OK),
    "one route, bindings without end": (lambda: fill('"u{}",', dump(routes(1)).decode()[:-4] + '"b0",', '"z"]}]}'), NO),
    "one binding without end": (lambda: fill('"b0",', dump(routes(1)).decode()[:-4] + '"b0",', '"b0"]}]}'), NO),
    "processors without end": (lambda: fill('"p{}",', dump(routes(1, processors=[])).decode()[:-4], '"z"]}]}'), NO),
    "unused senders": (lambda: dump(base(senders=[queue(f"o{i}") for i in range(10000)])), OK),
    "bindings of one sender": (lambda: dump(base(senders=[queue("o")], bindings=[
        {"id": f"b{i}", "sender_id": "o", "address": "a", "options": {"delay_seconds": 1}} for i in range(10000)])), OK),
    "one id for all": (lambda: dump(base(sessions=[mqtt(0)] * 10000)), "duplicate id"),
    "loops": (lambda: dump(loops(300, 10000)), OK),
    "topics": (lambda: dump(loops(10000, 1)), OK),
    "brokers without end": (lambda: fill('"tcp://b:{}",', '{"bridge":{"id":"x"},"sessions":[{"id":"s","transport":"mqtt","options":{"session":{"client_id":"c","broker_urls":[', '"tcp://b"]}}}]}', LIMIT // 2), NO),
    "regexes at the limit": (lambda: dump(rules(900, "regex", "(a+)+" * 819)), OK),
    "a regex over the limit": (lambda: dump(rules(1, "regex", "a" * 4097)), "4096"),
    "rules": (lambda: dump(rules(10000, "eq", "x")), OK),
    "rules with long lists": (lambda: dump(rules(30, "in", [str(i) for i in range(10000)])), OK),
    "conditions": (lambda: dump(base(routes=[{"id": "r", "resolver": {"rules": [{"match": [{}] * 10000}] * 40}}])), NO),
    "header map": (lambda: fill('"h{}":"nowhere",', dump(routes(1)).decode()[:-3] + ',"resolver":{"type":"header_map","header_map":{', '"z":"b0"}}}]}'), NO),
    "processors": (lambda: dump(base(processors={f"p{i}": {"type": "filter", "config": {}} for i in range(10000)})), OK),
    "lease cadences": (lambda: dump(cadences(9000)), NO),
    "endpoints without end": (lambda: fill('"c{}":"http://a",', '{"bridge":{"id":"x","cluster":{"endpoints":{', '"http":"http://a"}}}}'), "at most 10000"),
    "queue tags": (lambda: fill('"c{}":"v",', '{"bridge":{"id":"x"},"senders":[{"id":"o","transport":"sqs","options":{"queue_tags":{', '"z":"v"}}}]}'), NO),
    "origins": (lambda: fill("a,", '{"bridge":{"id":"x"},"http":{"admin_api_key":"0123456789abcdef","cors_origins":"', 'a"}}'), "at most 10000"),
    "long duration": (lambda: fill("1h", '{"bridge":{"id":"x","shutdown_timeout":"', '"}}'), OK),
    "longer duration": (lambda: fill("9h", '{"bridge":{"id":"x","shutdown_timeout":"', '"}}'), NO),
    "long duration of small parts": (lambda: fill("1ns", '{"bridge":{"id":"x","shutdown_timeout":"', '"}}'), OK),
    "long fraction": (lambda: fill("9", '{"bridge":{"id":"x","shutdown_timeout":"0.', 's"}}'), OK),
    "long number": (lambda: fill("9", '{"version":', "}"), NO),
    "long numbers": (lambda: fill("9" * 1000 + ",", "[", "0]"), NO),
    "full of white space": (lambda: pad(base()), OK),
    "full of lines": (lambda: fill("\n", '{"bridge":{"id":"x"}}'), OK),
    "more than 4 MiB": (lambda: pad(base(), LIMIT + 1), "4194304 bytes (4 MiB); shorten it [D1]"),
    "much more": (lambda: pad(base(), 16 * LIMIT), "4194304 bytes (4 MiB); shorten it [D1]"),
    "no UTF-8 at the end": (lambda: fill("x", '{"bridge":{"id":"', "", LIMIT - 1) + b"\xff", "not UTF-8"),
    "no UTF-8": (lambda: b"\xff\xfe" + b"x\0" * 1000, "not UTF-8"),
    "UTF-16": (lambda: json.dumps(base()).encode("utf-16"), NO),
    "UTF-16 without mark": (lambda: json.dumps(base()).encode("utf-16-le"), NO),
    "UTF-32": (lambda: json.dumps(base()).encode("utf-32"), NO),
    "overlong UTF-8": (lambda: b'{"bridge":{"id":"\xc0\xaf"}}', "not UTF-8"),
    "surrogates": (lambda: b'{"bridge":{"id":"\xed\xa0\x80"}}', "not UTF-8"),
    "NUL bytes": (lambda: b"\0" * LIMIT, NO),
    "a NUL byte": (lambda: b'{"bridge":{"id":"x\0y"}}', NO),
    "BOM": (lambda: b"\xef\xbb\xbf" + dump(base()), OK),
    "CRLF": (lambda: json.dumps(base(), indent=1).replace("\n", "\r\n").encode(), OK),
    "CR": (lambda: json.dumps(base(), indent=1).replace("\n", "\r").encode(), OK),
    "duplicate keys": (lambda: b'{"bridge":{"id":"x","id":"y"}}', "duplicate key"),
    "trailing value": (lambda: dump(base()) + b" {}", NO),
    "closing brackets": (lambda: fill("]"), NO),
    "a scalar": (lambda: b"1", NO),
    "a list": (lambda: b"[]", NO),
    "empty": (lambda: b"", "bridge.id is required"),
}
YAML = {
    "two keys a level": (lambda: fill("{a: {a: "), "nested deeper"),
    "block lists": (lambda: fill("- "), "nested deeper"),
    "block keys": (lambda: "".join(" " * i + "a:\n" for i in range(2500)).encode(), "nested deeper"),
    "lines of one indentation": (lambda: fill("- x\n"), "needs more memory"),
    "empty block entries": (lambda: fill("-\n"), "more than"),
    "block keys without values": (lambda: fill("k{}:\n"), NO),
    "question marks": (lambda: fill("? "), NO),
    "keys asked for": (lambda: fill("? k{}\n"), NO),
    "anchors": (lambda: fill("&a{} x,", "x: [", "]"), NO),
    "anchors of one name": (lambda: fill("&a x,", "x: [", "]"), NO),
    "anchors and aliases": (lambda: fill("&a{} x,*a{},".replace("*a{}", "*a0"), "x: [", "]"), NO),
    "aliases": (lambda: fill("*a,", "a: &a [x]\nb: [", "]"), "expand to more than"),
    "aliases of a long text": (lambda: fill("*a,", "a: &a " + "x" * (LIMIT // 2) + "\nb: [", "]"), NO),
    "aliases of a long key": (lambda: fill("*a,", "a: &a {" + "k" * (LIMIT // 2) + ": 1}\nb: [", "]", LIMIT // 2 + 90000), NO),
    "billion laughs": (lambda: laughs(9, 9), "expand to more than"),
    "thousand laughs": (lambda: laughs(4, 40), NO),
    "laughs over levels": (lambda: laughs(120, 1), "nested deeper"),
    "alias of itself": (lambda: b"a: &a [*a]\n", "no anchor before it"),
    "alias of nothing": (lambda: b"a: *b\n", "no anchor before it"),
    "alias as a key": (lambda: b"a: &a x\n*a : y\n", NO),
    "merge key": (lambda: b"a: &a {id: x}\nbridge: {<<: *a}\n", NO),
    "tags": (lambda: fill("!!str x,", "x: [", "]"), "is not accepted, since a key decides the type"),
    "a long tag": (lambda: b"x: !<" + b"t" * 4000000 + b"> y\n", NO),
    "tag directives": (lambda: fill("%TAG !a{}! tag:a,2000:\n", "", "---\nbridge: {id: x}\n"), "start with %"),
    "a directive twice": (lambda: b"%YAML 1.1\n%YAML 1.1\n---\nbridge: {id: x}\n", NO),
    "documents": (lambda: fill("---\n"), "second document"),
    "a second document": (lambda: b"bridge: {id: x}\n---\nbridge: {id: y}\n", "second document"),
    "tabs": (lambda: b"bridge:\n\tid: x\n", NO),
    "tabs only": (lambda: fill("\t"), NO),
    "spaces only": (lambda: fill(" "), "bridge.id is required"),
    "comments only": (lambda: fill("# x\n"), "bridge.id is required"),
    "comment after comment": (lambda: fill("#\n", BRIDGE), OK),
    "a long comment": (lambda: fill("x", BRIDGE + "# "), OK),
    "a comment that does not end": (lambda: fill("#", BRIDGE), OK),
    "a long block text": (lambda: fill("  x\n", "bridge:\n id: |\n"), NO),
    "a long folded text": (lambda: fill("  x\n", "bridge:\n id: >\n"), NO),
    "empty lines in a folded text": (lambda: fill("\n", "bridge:\n id: >\n  x\n", "  y\n"), NO),
    "a long plain text": (lambda: fill("x ", "bridge: {id: ", "}"), NO),
    "a plain text over lines": (lambda: fill(" x\n", "bridge:\n id: y\n"), NO),
    "a quoted text over lines": (lambda: fill("\n", "bridge: {id: 'x", "'}"), NO),
    "quotes in quotes": (lambda: fill("''", "bridge: {id: '", "'}"), NO),
    "colons": (lambda: fill(": "), NO),
    "commas": (lambda: fill(",", "x: ["), NO),
    "long plain key": (lambda: fill("k", "", ": 1\n"), NO),
    "many simple keys": (lambda: fill("[", "", "", 99) + fill("x: y,", "{", "", LIMIT - 99), NO),
    "flow keys without colon": (lambda: fill("k{},", "{", "}"), NO),
    "one line of flow maps": (lambda: fill("{a: b},", "x: [", "]"), NO),
    "indentation": (lambda: b"x:\n" + b" " * 4000000 + b"y: 1\n", NO),
    "indicators": (lambda: fill("- ? : & * ! | > ' % @ `"), NO),
    "NEL and LS": (lambda: fill("\u0085\u2028\u2029", BRIDGE), OK),
    "next lines in a text": (lambda: fill("\u2028", 'bridge: {id: "x', '"}'), NO),
    "values at the limit": (lambda: values(400001), "more than"),
    "many values": (lambda: values(399999), NO),
}


def table():
    """(name, extension, maker, outcome) of every document."""
    rows = [(f"{name}, {ext}", ext, make, outcome) for name, (make, outcome) in FORMS.items() for ext in ("json", "yaml")]
    rows += [(name, "yaml", make, outcome) for name, (make, outcome) in YAML.items()]
    return rows


def write_seeds(folder):
    for name, _ext, make, _outcome in table():
        data = make()
        if len(data) <= 4096 and not name.endswith(", yaml"):  # the same bytes as the JSON form
            slug = "".join(c if c.isalnum() else "_" for c in name)
            (pathlib.Path(folder) / f"hostile_{slug}").write_bytes(data)


if __name__ == "__main__":
    write_seeds(sys.argv[1])
