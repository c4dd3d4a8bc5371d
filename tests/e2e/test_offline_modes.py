"""`-config-digest`, `-deployment-fingerprint`, `-diff`, `-inspect` (spec 08 §2, acceptance check 1; 01 check 27;
07 check 33): the real program, and what it prints computed a second time."""

import hashlib
import json
import random
import re
import resource
import shutil
import subprocess

import normal_form
import pytest
import rig

CORPUS = rig.ROOT / "tests/fuzz/corpus/blueprint"
CLUSTER = CORPUS / "cluster.yaml"
TENANTS = CORPUS / "tenants.yaml"
MODES = (["-config-digest"], ["-deployment-fingerprint"], ["-inspect"], ["-diff", CLUSTER])
DOCUMENTS = 150


def run(*args, env=None):
    return subprocess.run([str(rig.BRIDGE), *map(str, args)], env=env, capture_output=True, text=True, timeout=60,
                          check=False)


def answer(*args):
    result = run(*args)
    assert result.returncode == 0, result.stderr
    return result.stdout


def digest_of(path):
    text = answer("-config-digest", path)
    assert re.fullmatch(r"[0-9a-f]{64}\n", text)
    return text.strip()


def patched(folder, source, find, replace, name="patched.yaml"):
    text = source.read_text()
    assert find in text
    path = folder / name
    path.write_text(text.replace(find, replace, 1))
    return path


def test_digest_equals_an_independent_computation(folder):
    """Random documents in random spellings; 01 check 27 on each of them."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    seen = {}
    for number in range(DOCUMENTS):
        document = normal_form.document(rng)
        want = normal_form.digest(document)
        for extension, write in (("json", normal_form.as_json), ("yaml", normal_form.as_yaml)):
            path = folder / f"{number}.{extension}"
            path.write_text(write(normal_form.shuffled(document, rng), rng), encoding="utf-8")
            assert digest_of(path) == want, f"seed {seed}: {path}"
        seen.setdefault(want, set()).add(json.dumps(document, default=vars, sort_keys=True))
    assert len(seen) > DOCUMENTS * 0.9, "the documents differ"


def test_digests_of_the_corpus_do_not_depend_on_the_format():
    for name in ("standalone", "direct", "cluster"):
        assert digest_of(CORPUS / f"{name}.yaml") == digest_of(CORPUS / f"{name}.json")


def test_diff_of_reordered_sections_is_empty(folder):
    other = patched(folder, TENANTS, "  - {id: to-b, sender_id: out-b, address: b}\n", "")
    other.write_text(other.read_text().replace("routes:\n", "  - {id: to-b, sender_id: out-b, address: b}\nroutes:\n"))
    assert digest_of(other) == digest_of(TENANTS)
    result = run("-diff", TENANTS, other)
    assert (result.returncode, json.loads(result.stdout)) == (0, {
        "retired_routes": [], "added_routes": [], "retired_sessions": [], "added_sessions": [], "class": "live-safe",
        "reasons": [], "swap": "in-place", "swap_reason": None})


def test_diff_names_the_changed_route(folder):
    other = patched(folder, TENANTS, "max_in_flight: 20", "max_in_flight: 21")
    result = run("-diff", TENANTS, other)
    diff = json.loads(result.stdout)
    assert result.returncode == 1
    assert (diff["retired_routes"], diff["added_routes"]) == (["route-a"], ["route-a"])
    assert (diff["retired_sessions"], diff["added_sessions"]) == (["a"], ["a"])
    assert (diff["class"], diff["swap"]) == ("live-safe", "in-place")


def test_diff_does_not_depend_on_the_order_of_entries(folder):
    rng = random.Random(7)
    for number in range(20):
        old, new = (normal_form.document(rng) for _ in range(2))
        answers = set()
        for side in range(3):
            paths = []
            for name, document in (("old", old), ("new", new)):
                paths.append(folder / f"{number}-{side}-{name}.json")
                paths[-1].write_text(normal_form.as_json(normal_form.shuffled(document, rng), rng), encoding="utf-8")
            answers.add(run("-diff", *paths).stdout)
        assert len(answers) == 1 and "" not in answers


def test_fingerprint(folder):
    """07 check 33, as far as it is offline."""
    text = ('tag="gobridge/deployment-profile/v1"\ndeployment_mode="clustered"\ncluster.rollout="refuse"\n'
            "cluster.members=[]\ncluster.endpoints={}\n"
            'lease={"table_name":"gobridge-leases","type":"dynamodb"}\n'
            'outbox={"table_name":"gobridge-outbox","type":"dynamodb"}\n'
            'dlq={"table_name":"gobridge-dlq","type":"dynamodb"}\n'
            'managed_subscriptions={"table_name":"gobridge-managed-subscriptions","type":"dynamodb"}')
    want = hashlib.sha256(text.encode()).hexdigest() + "\n"
    assert answer("-deployment-fingerprint", CLUSTER) == want
    rows = [("max_in_flight: 100", "max_in_flight: 7", True), ("bridge:\n", "version: 5\nbridge:\n", True),
            ("keep_alive: 30", "keep_alive: 31", True), ("gobridge-dlq", "other", False),
            ("  log_level: info\n", "  cluster: {members: [a]}\n", False),
            ("  log_level: info\n", "  cluster: {endpoints: {http: \"http://h:1\"}}\n", False),
            ("  log_level: info\n", "  cluster: {rollout: independent}\n", False),
            ("  deployment_mode: clustered\n", "", False)]
    for find, replace, same in rows:
        other = patched(folder, CLUSTER, find, replace)
        assert (answer("-deployment-fingerprint", other) == want) == same, replace


def test_inspect(folder):
    result = run("-inspect", CLUSTER)
    seen = json.loads(result.stdout)
    assert (result.returncode, result.stderr, result.stdout.count("\n")) == (0, "", 1)
    assert set(seen) == {"errors", "warnings", "bridge_id", "deployment_mode", "shutdown_timeout_ns", "cluster", "stores",
                         "sessions", "routes", "sqs", "ssm_paths", "http_receivers", "fingerprint", "baseline_digest",
                         "raw_sha256"}
    assert seen["errors"] == [] and len(seen["warnings"]) == 1 and "stale_claim_duration" in seen["warnings"][0]
    assert seen["raw_sha256"] == hashlib.sha256(CLUSTER.read_bytes()).hexdigest()
    assert seen["baseline_digest"] == digest_of(CLUSTER)
    assert seen["fingerprint"] == answer("-deployment-fingerprint", CLUSTER).strip()
    parts = [b"gobridge-mqtt-state-v1", b"ssl://mqtt.prod.example.com:8883", b"telemetry-bridge"]  # spec 03 §3.4
    identity = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()
    assert seen["sessions"][0]["storage_identity"] == identity



def test_inspect_admits_the_failover_budget(folder):
    """09 §1.2: the start-up planning is part of the validation."""
    path = patched(folder, CLUSTER, "failover_slo: 980s", "failover_slo: 967499999999ns")
    result = run("-inspect", path)
    errors = json.loads(result.stdout)["errors"]
    assert result.returncode == 1 and len(errors) == 1 and "exceeds declared failover_slo" in errors[0]
    assert run("-inspect", patched(folder, CLUSTER, "failover_slo: 980s", "failover_slo: 967.5s")).returncode == 0


def test_inspect_of_a_document_with_errors(folder):
    path = patched(folder, CLUSTER, "keep_alive: 30", "keep_alive: soon")
    result = run("-inspect", path)
    seen = json.loads(result.stdout)
    assert (result.returncode, result.stdout.count("\n")) == (1, 1)
    assert len(seen["errors"]) == 1 and f"{path}:28:" in seen["errors"][0] and "keep_alive" in seen["errors"][0]
    assert set(seen) == {"errors", "warnings", "raw_sha256"}


def test_exit_codes(folder):
    invalid = folder / "invalid.yaml"
    invalid.write_text("bridge: {}\n")
    assert answer("-version").startswith("gobridge ")
    assert run("-unknown").returncode == 2
    for mode in MODES:
        assert run(*mode).returncode == 2, "a file is missing on the command line"
        assert run(*mode, TENANTS, "-validate").returncode == 2, "two modes"
        assert run(*mode, TENANTS, "-version").returncode == 2, "two modes"
        for path in (invalid, folder / "missing.yaml", folder):
            result = run(*mode, path)
            assert result.returncode == 1 and str(path) in result.stdout + result.stderr
            assert result.stdout == "" or (mode == ["-inspect"] and json.loads(result.stdout)["errors"])
    assert run("-diff", invalid, TENANTS).returncode == 1
    assert run("-config-digest", TENANTS, "-inspect", TENANTS).returncode == 2


def test_closed_stdout_is_a_failure():
    for mode in MODES:
        result = subprocess.run(f"exec {rig.BRIDGE} {' '.join(map(str, mode))} {TENANTS} >/dev/full", shell=True,
                                capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 1 and "stdout" in result.stderr


SECRET = "s3cr3t-0123456789"


def test_no_secret_is_printed(folder):
    """01 check 34, but a changed secret changes the digest."""
    path = patched(folder, TENANTS, "client_id: bridge-a", "client_id: bridge-a, username: u, password: "
                   f"{SECRET}, allow_plaintext_credentials: true, tls: {{cert_pem: x, key_pem: {SECRET}}}")
    path.write_text(path.read_text() + f"http: {{admin_api_key: {SECRET}, monitor_api_key: {SECRET}}}\n")
    changed = patched(folder, path, f"password: {SECRET}", f"password: {SECRET}x", "changed.yaml")
    assert digest_of(path) != digest_of(changed)
    for args in (["-inspect", path], ["-diff", path, changed], ["-diff", path, TENANTS], ["-config-digest", path]):
        result = run(*args)
        assert result.stdout and SECRET not in result.stdout + result.stderr


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode[0])
def test_offline(mode, folder):
    """Opens no listener, backend or network connection, and writes nothing."""
    strace = shutil.which("strace")
    trace = folder / "trace"
    before = sorted(folder.rglob("*"))
    env = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "GOBRIDGE_INSTANCE_ID": "other", "GOBRIDGE_BOOTSTRAP": "{"}
    command = [str(rig.BRIDGE), *map(str, mode), str(CLUSTER)]
    plain = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert plain.stdout == run(*mode, CLUSTER).stdout, "the environment says nothing"
    assert sorted(folder.rglob("*")) == before
    if strace is None:
        return
    result = subprocess.run([strace, "-f", "-e", "trace=%network", "-o", str(trace), *command], env=env,
                            capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0 and "exited with 0" in trace.read_text(), "it was traced"
    assert not re.search(r"\b(socket|connect|bind|send\w*|recv\w*)\(", trace.read_text())


@pytest.mark.parametrize("count, ends", [(10_000, 1), (5_000, 5_000)], ids=["one unit", "a unit for each route"])
def test_large_documents_are_compared_quickly(folder, count, ends):
    """As many entries as are accepted, and every route changed."""
    def lines(section, number, text):
        return f"{section}:\n" + "".join(f"- {{{text(i)}}}\n" for i in range(number))
    paths = []
    for limit in (1, 2):
        text = "bridge: {id: b}\nstores: {dlq: {type: memory, options: {acknowledge_volatile: true}}}\n"
        text += lines("senders", ends, lambda i: f"id: s{i}, transport: sqs, options: {{queue_name: q}}")
        text += lines("receivers", ends, lambda i: f"id: r{i}, transport: sqs, options: {{queue_name: p{i}}}")
        text += lines("bindings", count, lambda i: f"id: b{i}, sender_id: s{i % ends}, address: x")
        text += lines("routes", count, lambda i: f"id: t{i}, receiver_id: r{i % ends}, bindings: [b{i}], "
                                                 f"policy: {{max_in_flight: {limit}, allow_unfenced: true}}")
        paths.append(folder / f"{limit}.yaml")
        paths[-1].write_text(text)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer("-config-digest", paths[0])
    loaded = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run("-diff", *paths)
    compared = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(json.loads(result.stdout)["retired_routes"]) == count, result.stderr
    one = loaded.ru_utime + loaded.ru_stime - used.ru_utime - used.ru_stime
    two = compared.ru_utime + compared.ru_stime - loaded.ru_utime - loaded.ru_stime
    print(f"digest {one:.2f} s, diff {two:.2f} s of CPU")
    assert two < 3 and two - 2 * one < 1, "a diff loads and digests two documents, and the rest is short"
