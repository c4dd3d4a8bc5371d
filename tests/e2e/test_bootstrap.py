"""A process that its deployment configures (spec 07 §1-3, 09 §4.3) and what it asks of the document (01 §6)."""

import json
import os
import socket
import threading

import pytest

import cluster
import rig


class Doorbell(threading.Thread):
    """Listens, and counts who comes: nobody may, before a document is admitted."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.rings = 0
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.rings += 1
            connection.close()

    def close(self):
        self.socket.close()


@pytest.fixture
def door(parts):
    made = Doorbell()
    parts.append(made)
    return made


class Deployed(rig.Bridge):
    """The program as a deployment starts it: no -config, the bootstrap in the environment."""

    def __init__(self, folder, doc, bootstrap, env=None):
        super().__init__(folder, doc, env)
        self.bootstrap = {"bridge_id": doc["bridge"]["id"], "config_file_path": str(self.config),
                          "poll_interval": "100ms", **bootstrap}
        self.env["GOBRIDGE_AWS_BOOTSTRAP_JSON"] = json.dumps(self.bootstrap)

    def start(self, wait="bridge started", seconds=30):
        seen = self.count(wait) if wait else 0
        self.process = rig.Process("gobridge", [*self.wrapper, str(rig.BRIDGE), *self.args], self.log, self.env)
        if wait:
            rig.wait_until(lambda: self.count(wait) > seen or not self.alive(), seconds, f"the bridge logs {wait!r}")
        return self


def ha_document(folder, port):
    doc = cluster.document(folder, port, f"http://127.0.0.1:{port}/q/telemetry-events", f"http://127.0.0.1:{port}")
    doc["routes"][0]["policy"]["ack_after"] = "outbox_persist"
    doc["routes"][0]["session"].update({"failover_slo": "60s", "startup_allowance": "5s",
                                        "broker_health_step_down": "off"})
    return doc


def fingerprint(folder, doc):
    path = folder / "fingerprint.json"
    path.write_text(json.dumps(doc))
    import subprocess
    return subprocess.run([str(rig.BRIDGE), "-deployment-fingerprint", str(path)], check=True, capture_output=True,
                          text=True).stdout.strip()


def ha_bootstrap(folder, doc, **changes):
    stores = doc["stores"]
    return {"topology": "dynamodb_coordinated_ha",
            "dynamodb_ha_lease_table_name": stores["lease"]["options"]["table_name"],
            "dynamodb_ha_outbox_table_name": stores["outbox"]["options"]["table_name"],
            "dynamodb_ha_managed_subscriptions_table_name": stores["managed_subscriptions"]["options"]["table_name"],
            "dynamodb_ha_config_fingerprint": fingerprint(folder, doc), **changes}


REFUSED = {
    "missing startup_allowance": ({"routes.0.session.startup_allowance": None}, "startup_allowance", "[A6]"),
    "static endpoints": ({"bridge.cluster": {"endpoints": {"http": "http://10.0.1.10:8080"}}}, "endpoints", "[A4]"),
    "foreign table name": ({"stores.outbox.options.table_name": "foreign"}, "foreign", "[A3]"),
    "preflight_advisory": ({"stores.lease.options.preflight_advisory": True}, "preflight_advisory", "[A4]"),
    "moved fingerprint": ({"stores.dlq.options.table_name": "foreign"}, "fingerprint", "[A8]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_ha_profile_refuses_before_stores(case, folder, door, parts):
    """01 check 37: live, idle, and neither store nor broker was asked for anything."""
    changes, word, rule = REFUSED[case]
    doc = ha_document(folder, door.port)
    bootstrap = ha_bootstrap(folder, doc)
    for path, value in changes.items():
        rig.set_path(doc, path, value)
    bridge = Deployed(folder, doc, bootstrap, env={"AWS_ENDPOINT_URL": f"http://127.0.0.1:{door.port}"})
    parts.append(bridge)
    bridge.start(wait="configuration rejected; idle until it is corrected")
    line = next(l for l in bridge.text().splitlines() if rule in l)
    assert word in line and "error: " in line
    assert bridge.alive()
    assert door.rings == 0
    assert bridge.terminate() == 0


def test_document_is_corrected_later(folder, broker, fake, parts):
    """A rejected document ends nothing; the corrected one runs without a restart (07 §3)."""
    good = rig.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    bad = json.loads(json.dumps(good))
    bad["bridge"]["id"] = "somebody-else"
    bridge = Deployed(folder, good, {})
    parts.append(bridge)
    assert bridge.run("-seed-managed-subscriptions", "plant").returncode == 0
    bridge.write(bad)
    bridge.start(wait="configuration rejected")
    assert "[A1]" in bridge.text()
    bridge.write(good)
    bridge.wait_log("bridge started")
    assert bridge.terminate() == 0


def test_worker_waits_for_its_document(folder, broker, fake, parts):
    """07 check 3, without HTTP: nothing is created, and the document runs once it is there."""
    doc = rig.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    bridge = Deployed(folder, doc, {"node_role": "worker"})
    parts.append(bridge)
    bridge.seed()
    text = bridge.config.read_text()
    bridge.config.unlink()
    bridge.start(wait="idle until it exists")
    assert not bridge.config.exists()
    fresh = folder / "new.json"
    fresh.write_text(text)
    os.replace(fresh, bridge.config)
    bridge.wait_log("bridge started")
    assert bridge.terminate() == 0


def test_replicas_refuse_an_outbox(folder, door, parts):
    doc = rig.document(folder, door.port, f"http://127.0.0.1:{door.port}/q/t", f"http://127.0.0.1:{door.port}")
    bridge = Deployed(folder, doc, {"topology": "filesystem_replicated"})
    parts.append(bridge)
    bridge.start(wait="configuration rejected")
    assert bridge.text().count("[A9]") == 2
    assert door.rings == 0
    assert bridge.terminate() == 0


BAD = {
    "not JSON": ("{", "invalid JSON at line 1, column 2"),
    "unknown key": ('{"bridge": 1}', 'unknown key'),
    "replicas on DynamoDB (07 check 1)": (
        '{"bridge_id": "b", "topology": "filesystem_replicated", "config_source": "dynamodb"}', "does not go with"),
    "HA without tables": ('{"bridge_id": "b", "config_file_path": "/x", "topology": "dynamodb_coordinated_ha"}',
                          "dynamodb_ha_lease_table_name is required"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_bootstrap_exits(case, folder):
    text, says = BAD[case]
    env = {"PATH": os.environ["PATH"], "GOBRIDGE_AWS_BOOTSTRAP_JSON": text}
    result = rig.subprocess.run([str(rig.BRIDGE)], env=env, capture_output=True, text=True, timeout=10, cwd=folder)
    assert result.returncode == 1
    assert says in result.stderr


def test_variables_that_contradict(folder):
    def run(*args, **env):
        env = {"PATH": os.environ["PATH"], **env}
        return rig.subprocess.run([str(rig.BRIDGE), *args], env=env, capture_output=True, text=True, timeout=10,
                                  cwd=folder)
    one = '{"bridge_id": "b", "config_file_path": "/nowhere/b.yaml"}'
    differ = run(GOBRIDGE_AWS_BOOTSTRAP_JSON=one, GOBRIDGE_FILEBASED_BOOTSTRAP_JSON=one + " ")
    assert differ.returncode == 1 and "both set and differ" in differ.stderr
    role = run(GOBRIDGE_AWS_BOOTSTRAP_JSON=one[:-1] + ', "node_role": "worker"}', GOBRIDGE_NODE_ROLE="control")
    assert role.returncode == 1 and "GOBRIDGE_NODE_ROLE" in role.stderr
    both = run("-config", "x.yaml", GOBRIDGE_AWS_BOOTSTRAP_JSON=one)
    assert both.returncode == 2 and "-config does not go with" in both.stderr
    (folder / "boot.json").write_text("{}")
    from_file = run(GOBRIDGE_FILEBASED_BOOTSTRAP_FILE=str(folder / "boot.json"))
    assert from_file.returncode == 1 and "bridge_id is required" in from_file.stderr
    (folder / "boot.json").write_text(" " * (1 << 20) + one)
    large = run(GOBRIDGE_FILEBASED_BOOTSTRAP_FILE=str(folder / "boot.json"))
    assert large.returncode == 1 and "1048576 bytes" in large.stderr
