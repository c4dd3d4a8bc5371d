"""The fault proxy itself: each effect, orders of two clients, records, and the control port."""

import concurrent.futures
import contextlib
import json
import socket
import zlib

import botocore.exceptions
import pytest

import fault_proxy
import rig
from fault_proxy import PRESETS

TABLE = "fault-proxy"


class Control:
    """A control connection, as a test in C makes one."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=40)
        self.stream = self.socket.makefile("rw")

    def ask(self, do, **fields):
        self.stream.write(json.dumps({"do": do, **fields}) + "\n")
        self.stream.flush()
        return json.loads(self.stream.readline())

    def close(self):
        self.stream.close()
        self.socket.close()


@pytest.fixture(scope="module")
def database(dynamodb):
    dynamodb.connect().create_table(TableName=TABLE, BillingMode="PAY_PER_REQUEST",
                                    KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
                                    AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}])
    return dynamodb


@pytest.fixture
def client(database, faults):
    return database.connect(faults.open())


@pytest.fixture
def pool():
    with concurrent.futures.ThreadPoolExecutor(8) as made:
        yield made


@pytest.fixture
def direct(database):
    """The emulator without the proxy; its table is empty again."""
    made = database.connect()
    for item in made.scan(TableName=TABLE)["Items"]:
        made.delete_item(TableName=TABLE, Key={"PK": item["PK"]})
    return made


def put(client, key, **more):
    return client.put_item(TableName=TABLE, Item={"PK": {"S": key}}, **more)


def connect(endpoint, timeout=20):
    return socket.create_connection(("127.0.0.1", int(endpoint.rsplit(":", 1)[1])), timeout=timeout)


def send_put(connection, key):
    """As bytes: botocore hides what is wrong with an answer when it may not try again."""
    body = json.dumps({"TableName": TABLE, "Item": {"PK": {"S": key}}, "ReturnConsumedCapacity": "INDEXES"}).encode()
    connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n"
                       b"Content-Type: application/x-amz-json-1.0\r\nX-Amz-Date: 20260101T000000Z\r\n"
                       b"Authorization: AWS4-HMAC-SHA256 Credential=local/20260101/eu-central-1/dynamodb/aws4_request, "
                       b"SignedHeaders=host;x-amz-date, Signature=" + b"0" * 64 + b"\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body)


def receive(stream):
    """(status, headers, as much of the body as comes)."""
    status = int(stream.readline().split()[1])
    headers = dict(line.decode().strip().lower().split(": ", 1) for line in iter(stream.readline, b"\r\n"))
    return status, headers, stream.read(int(headers["content-length"]))


def stored(direct):
    return sorted(item["PK"]["S"] for item in direct.scan(TableName=TABLE)["Items"])


def code_of(error):
    return error.value.response["Error"]["Code"]


def test_a_request_passes_and_is_recorded(faults, client, direct):
    put(client, "a")
    assert stored(direct) == ["a"]
    seen = faults.requests()
    assert [(r["action"], r["effect"], r["status"], r["ended"]) for r in seen] == [("PutItem", "pass", 200, "answered")]
    assert json.loads(seen[0]["sent"])["Item"] == {"PK": {"S": "a"}}
    assert faults.requests(since=1) == []


def test_the_clients_connection_is_kept(faults):
    with connect(faults.open()) as connection:
        stream = connection.makefile("rb")
        for _ in range(3):
            send_put(connection, "a")
            status, headers, body = receive(stream)
            assert (status, int(headers["x-amz-crc32"])) == (200, zlib.crc32(body))
    assert faults.state()["arrived"] == 3


@pytest.mark.parametrize("effect, applied", [("drop", False), ("cut", True)])
def test_connections_closed_unanswered(faults, client, direct, effect, applied):
    faults.rule(effect)
    with pytest.raises(botocore.exceptions.ConnectionClosedError):
        put(client, "a")
    assert stored(direct) == (["a"] if applied else [])
    put(client, "b")
    assert "b" in stored(direct)


def test_half_of_an_answer(faults, direct):
    faults.rule("half")
    with connect(faults.open()) as connection:
        send_put(connection, "a")
        stream = connection.makefile("rb")
        _, headers, body = receive(stream)
        assert len(body) == int(headers["content-length"]) // 2
        assert stream.read() == b""
    assert stored(direct) == ["a"]


def test_one_changed_byte_is_for_the_checksum_to_find(faults):
    faults.rule("corrupt")
    with connect(faults.open()) as connection:
        send_put(connection, "a")
        status, headers, body = receive(connection.makefile("rb"))
    assert status == 200 and json.loads(body)
    assert int(headers["x-amz-crc32"]) != zlib.crc32(body)


def test_silence_ends_with_the_clients_patience(faults, direct):
    faults.rule("silent")
    with connect(faults.open(), timeout=0.5) as connection:
        send_put(connection, "a")
        rig.wait_until(lambda: stored(direct) == ["a"], 20, "the put is applied")
        with pytest.raises(TimeoutError):
            connection.recv(1)
    rig.wait_until(lambda: faults.state()["finished"] == 1, 10, "the proxy sees that the client has gone")
    assert faults.requests()[0]["ended"] == "gone"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_answers_by_name(faults, client, direct, name):
    faults.rule(name)
    with pytest.raises(botocore.exceptions.ClientError) as error:
        puts = [{"Put": {"TableName": TABLE, "Item": {"PK": {"S": k}}}} for k in "ab"]
        client.transact_write_items(TransactItems=puts)
    status, code = PRESETS[name]
    assert (error.value.response["ResponseMetadata"]["HTTPStatusCode"], code_of(error)) == (status, code)
    if name == "conflict":
        assert [r["Code"] for r in error.value.response["CancellationReasons"]] == ["TransactionConflict"] * 2
    assert stored(direct) == []


def test_an_answer_of_ones_own(faults, client, direct):
    faults.rule("answer", status=500, code="Strange", message="why", apply=True, headers={"X-Extra": "1"})
    with pytest.raises(botocore.exceptions.ClientError) as error:
        put(client, "a")
    assert code_of(error) == "Strange" and error.value.response["Error"]["Message"] == "why"
    assert error.value.response["ResponseMetadata"]["HTTPHeaders"]["x-extra"] == "1"
    assert stored(direct) == ["a"]


def test_an_index_that_lags(faults, client, direct):
    put(client, "a")
    empty = {"Items": [], "Count": 0, "ScannedCount": 0}
    faults.rule("answer", action="Scan", status=200, body=empty, times=2)
    assert [client.scan(TableName=TABLE)["Count"] for _ in range(3)] == [0, 0, 1]


def test_rules_count_and_match(faults, client, direct):
    faults.rule("drop", action="PutItem", contains='"b"', skip=1, times=2)
    ends = []
    for key in "bababb":
        try:
            put(client, key)
            ends.append("ok")
        except botocore.exceptions.ConnectionClosedError:
            ends.append("closed")
    assert ends == ["ok", "ok", "closed", "ok", "closed", "ok"]
    client.get_item(TableName=TABLE, Key={"PK": {"S": "b"}})
    assert faults.state()["rules"] == [2]


def test_delays(faults, client, pool):
    faults.rule(delay_ms=300)
    faults.rule(answer_delay_ms=300)
    for _ in range(2):
        asked = pool.submit(put, client, "a")
        with pytest.raises(TimeoutError):
            asked.result(0.25)
        asked.result(20)


@pytest.mark.parametrize("order, left", [("AB", "B"), ("BA", "A")])
def test_two_clients_in_either_order(database, faults, direct, pool, order, left):
    clients = {name: database.connect(faults.open(name)) for name in "AB"}
    faults.rule(hold="request", action="PutItem", times=0)
    asked = {name: pool.submit(clients[name].put_item, TableName=TABLE, Item={"PK": {"S": "x"}, "by": {"S": name}})
             for name in "AB"}
    rig.wait_until(lambda: len(faults.held()) == 2, 20, "both puts are held")
    assert stored(direct) == []
    for name in order:
        faults.release(name)
        assert direct.get_item(TableName=TABLE, Key={"PK": {"S": "x"}})["Item"]["by"]["S"] == name
        asked[name].result(20)
    assert direct.get_item(TableName=TABLE, Key={"PK": {"S": "x"}})["Item"]["by"]["S"] == left
    with pytest.raises(ValueError):
        faults.release("A")


def test_a_held_answer_was_applied_and_can_be_cut(faults, client, direct, pool):
    faults.rule("cut", hold="answer")
    asked = pool.submit(put, client, "a")
    rig.wait_until(lambda: faults.held(), 20, "the answer is held")
    assert stored(direct) == ["a"] and not asked.done()
    faults.release()
    with pytest.raises(botocore.exceptions.ConnectionClosedError):
        asked.result(20)


def test_a_request_outlives_its_client(faults, direct):
    """What a client gave up on may be applied later, after others."""
    faults.rule(hold="request")
    with connect(faults.open()) as connection:
        send_put(connection, "late")
        rig.wait_until(lambda: faults.held(), 20, "the put is held")
    rig.wait_until(lambda: faults.held()[0]["gone"], 10, "the proxy sees that the client has gone")
    assert stored(direct) == []
    faults.release()
    assert stored(direct) == ["late"]
    assert faults.requests()[0]["ended"] == "gone"


def test_capacity_is_summed_as_the_emulator_counts_it(database, faults, direct):
    client = database.connect(faults.open("A", meter=True))
    for key in "abc":
        put(client, key)
    client.get_item(TableName=TABLE, Key={"PK": {"S": "a"}}, ConsistentRead=True)
    rows = {(r["client"], r["action"], r["index"]): (r["units"], r["requests"])
            for r in faults.command("capacity")["capacity"]}
    assert rows[("A", "PutItem", "")] == (3, 3)
    assert rows[("A", "GetItem", "")][1] == 1


def test_records_are_bounded(faults, client, monkeypatch):
    monkeypatch.setattr(fault_proxy, "RECORD_BYTES_MAX", 1000)
    for _ in range(10):
        put(client, "k" * 100)
    numbers = [r["request"] for r in faults.requests()]
    assert 0 < len(numbers) < 10 and numbers[-1] == 10
    assert faults.state()["finished"] == 10


def test_cut_and_clear(faults, client, direct, pool):
    put(client, "a")
    faults.command("cut")
    faults.rule(hold="request")
    asked = pool.submit(put, client, "b")
    rig.wait_until(lambda: faults.held(), 20, "the put is held")
    faults.command("clear")
    asked.result(20)
    assert stored(direct) == ["a", "b"]
    assert faults.state()["rules"] == []


def test_sessions_of_the_control_port_are_apart(database, faults, direct):
    new = lambda: contextlib.closing(Control(faults.control_port))
    with new() as one, new() as two:
        ports = [c.ask("open", client="A")["port"] for c in (one, two)]
        clients = [database.connect(f"http://127.0.0.1:{port}") for port in ports]
        assert one.ask("rule", effect="drop")["ok"]
        put(clients[1], "b")
        with pytest.raises(botocore.exceptions.ConnectionClosedError):
            put(clients[0], "a")
        assert [c.ask("state")["arrived"] for c in (one, two)] == [1, 1]
        assert stored(direct) == ["b"]
    rig.wait_until(lambda: not rig.is_listening(ports[0]), 10, "the ports end with their session")


@pytest.mark.parametrize("line, word", [
    ("nonsense", "Expecting"), ("[]", "pop"), ("{}", "do:"), ('{"do": "fly"}', "do:"), ('{"do": "release"}', "held"),
    ('{"do": "rule", "effect": "fly"}', "effect:"), ('{"do": "rule", "hold": "fly"}', "hold:"),
    ('{"do": "rule", "colour": 1}', "colour"), ('{"do": "open", "x": 1}', "x"),
])
def test_bad_commands_are_answered(faults, line, word):
    with contextlib.closing(Control(faults.control_port)) as control:
        control.stream.write(line + "\n")
        control.stream.flush()
        answer = json.loads(control.stream.readline())
        assert not answer["ok"] and word in answer["error"]
        assert control.ask("state")["ok"]
