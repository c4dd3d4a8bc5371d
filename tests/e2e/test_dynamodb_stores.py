"""Stores of type dynamodb under the real program: tables, preflight, seeding, kills."""

import os
import time
import uuid

import boto3
import pytest

import rig

ROLES = ("outbox", "dlq", "managed_subscriptions")


@pytest.fixture
def shared(folder, broker, fake, dynamodb, parts):
    """Makes a bridge whose stores are in DynamoDB, with tables of its own; not seeded, not started."""
    def make(**options):
        suffix = uuid.uuid4().hex[:8]
        doc = rig.document(folder, broker.port, fake.queue_url(), fake.endpoint)
        for role in ROLES:
            doc["stores"][role] = {"type": "dynamodb", "options": {"table_name": f"gb-{role}-{suffix}", **options}}
        bridge = rig.Bridge(folder, doc, env={"AWS_ENDPOINT_URL_DYNAMODB": dynamodb.endpoint,
                                              "AWS_REGION": "eu-central-1"})
        parts.append(bridge)
        return bridge
    return make


@pytest.fixture
def client(dynamodb):
    return boto3.client("dynamodb", endpoint_url=dynamodb.endpoint, region_name="eu-central-1",
                        aws_access_key_id="a", aws_secret_access_key="b")


def table_of(bridge, role):
    return bridge.doc["stores"][role]["options"]["table_name"]


def test_messages_survive_kills(shared, publisher, fake, client):
    bridge = shared()
    assert bridge.run("-create-tables").returncode == 0
    bridge.seed()
    bridge.start()
    sent = []
    for life in range(3):
        for i in range(100):
            sent.append(b"%d-%d" % (life, i))
            publisher.publish(f"telemetry/{i % 8}", sent[-1], message_id=f"id-{life}-{i}")
        time.sleep(0.3)
        bridge.kill()
        bridge.start()
    publisher.flush()
    fake.wait_for_payloads(sent, 60)
    assert bridge.terminate() == 0
    rows = client.scan(TableName=table_of(bridge, "outbox"))["Items"]
    assert {r["status"]["S"] for r in rows if r["SK"]["S"] != "FENCE"} == {"completed"}


def test_records_of_a_held_partition_enter_no_index(shared, publisher, fake, client):
    bridge = shared()
    assert bridge.run("-create-tables").returncode == 0
    bridge.seed()
    bridge.start()
    sent = []
    for i in range(300):
        sent.append(b"%d " % i + bytes(range(256)) * 4)
        publisher.publish(f"telemetry/{i % 8}", sent[-1], message_id=f"id-{i}")
    publisher.flush()
    fake.wait_for_payloads(sent, 60)
    assert bridge.terminate() == 0
    rows = [r for r in client.scan(TableName=table_of(bridge, "outbox"))["Items"] if r["SK"]["S"] != "FENCE"]
    assert len(rows) == len(sent)
    assert {r["status"]["S"] for r in rows} == {"completed"}
    assert not any("claim_sort" in r or "body" in r or "envelope_json" in r for r in rows)
    # Those before the first claim are in the indexes; one row in ten at most.
    assert sum("rid" in r for r in rows) > len(rows) * 0.9, rows[-1]


def test_creating_twice_changes_nothing(shared, client):
    bridge = shared()
    first = bridge.run("-create-tables")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.count(": created\n") == 3
    before = client.describe_table(TableName=table_of(bridge, "outbox"))["Table"]
    second = bridge.run("-create-tables")
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout.count(": exists, as expected\n") == 3
    assert client.describe_table(TableName=table_of(bridge, "outbox"))["Table"] == before


def make_hash_only(client, name):
    client.create_table(TableName=name, BillingMode="PAY_PER_REQUEST",
                        AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
                        KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}])


def test_preflight_refuses_another_shape(shared, client):
    bridge = shared()
    make_hash_only(client, table_of(bridge, "outbox"))
    assert bridge.run("-create-tables").returncode == 1
    bridge.seed()
    result = bridge.run()
    assert result.returncode == 1
    assert "expected the keys PK (S) hash, SK (S) range, but it has PK (S) hash, no range key" in result.stderr
    assert table_of(bridge, "outbox") in result.stderr
    assert "mqtt connected" not in result.stderr


def test_advisory_preflight_warns(shared, client):
    bridge = shared(preflight_advisory=True)
    make_hash_only(client, table_of(bridge, "dlq"))
    bridge.run("-create-tables")
    bridge.seed()
    bridge.start()
    assert "preflight_advisory lets it pass" in bridge.text()
    assert bridge.terminate() == 0


def test_seeding_needs_its_table(shared):
    bridge = shared()
    result = bridge.run("-seed-managed-subscriptions", "plant")
    assert result.returncode == 1
    assert "-create-tables" in result.stderr


def test_unreachable_service_is_fatal(shared):
    bridge = shared()
    bridge.env["AWS_ENDPOINT_URL_DYNAMODB"] = f"http://127.0.0.1:{rig.free_port()}"
    result = bridge.run(seconds=60)
    assert result.returncode == 1
    assert "preflight of the stores" in result.stderr


def test_two_bridges_killed_in_turn(shared, folder, publisher, fake, client, parts):
    """One outbox, two processes one after the other, local tokens; GB_KILLS rounds of kill -9."""
    first = shared()
    assert first.run("-create-tables").returncode == 0
    first.seed()
    (folder / "second").mkdir()
    second = rig.Bridge(folder / "second", first.doc, env={**first.env, "GOBRIDGE_INSTANCE_ID": "second"})
    parts.append(second)
    first.env["GOBRIDGE_INSTANCE_ID"] = "first"
    sent = []
    for life in range(int(os.environ.get("GB_KILLS", "10"))):
        bridge = (first, second)[life % 2]
        bridge.start()
        for i in range(20):
            sent.append(b"%d-%d" % (life, i))
            publisher.publish(f"telemetry/{i % 8}", sent[-1], message_id=f"id-{life}-{i}")
            time.sleep(0.002)
        time.sleep(0.05 * (life % 5))
        bridge.kill()
    first.start()
    publisher.flush()
    fake.wait_for_payloads(sent, 120)
    time.sleep(1)
    assert first.terminate() == 0
    rows = [r for r in rows_of(client, table_of(first, "outbox")) if r["SK"]["S"] != "FENCE"]
    assert {r["status"]["S"] for r in rows} == {"completed"}
    print(f"{len(sent)} messages, {len(fake.payloads()) - len(sent)} duplicates")


def rows_of(client, table):
    pages = client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    return [item for page in pages for item in page["Items"]]
