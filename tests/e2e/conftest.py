"""Fixtures of the end-to-end tests: each part is real, listens on a free port and ends with its test."""

import os
import pathlib

import pytest

import cluster
import rig
from emulators import DynamoDb, missing
from fake_sqs import FakeSqs
from fault_proxy import FaultProxy
from network import Proxy, WebSocketGateway


def pytest_sessionstart():
    if not rig.BRIDGE.exists():
        pytest.exit(f"{rig.BRIDGE} does not exist: build it first (make)", returncode=1)


@pytest.fixture
def folder(tmp_path):
    os.chmod(tmp_path, 0o700)
    return tmp_path


@pytest.fixture
def parts():
    """Everything with close(); closed in reverse order."""
    made = []
    yield made
    for part in reversed(made):
        part.close()


@pytest.fixture
def broker(folder, parts):
    made = rig.Broker(folder / "broker")
    parts.append(made)
    return made


@pytest.fixture
def fake(parts):
    made = FakeSqs()
    parts.append(made)
    return made


@pytest.fixture(scope="session")
def moto(tmp_path_factory):
    made = rig.SqsServer(tmp_path_factory.mktemp("moto"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def dynamodb(tmp_path_factory):
    """The better emulator that is there; shared, so tests name their own tables."""
    made = DynamoDb(tmp_path_factory.mktemp("dynamodb"))
    yield made
    made.close()


@pytest.fixture
def dynoxide(dynamodb):
    """For what moto does not answer as AWS does, see docs/emulators.md."""
    if dynamodb.kind != "dynoxide":
        pytest.skip(missing("dynoxide"))
    return dynamodb


@pytest.fixture
def faults(dynamodb, parts):
    """A proxy in front of it, without rules."""
    made = FaultProxy(dynamodb.port)
    parts.append(made)
    return made


@pytest.fixture
def new_publisher(broker, parts):
    def make(port=None, **options):
        made = rig.Publisher(port or broker.port, **options)
        parts.append(made)
        return made
    return make


@pytest.fixture
def publisher(new_publisher):
    return new_publisher()


@pytest.fixture
def new_bridge(folder, broker, fake, parts):
    """Makes a bridge over broker and fake SQS, seeded and started unless told otherwise; `changes` by dotted path."""
    def make(changes=None, start=True, seed=True, name="bridge", args=(), **options):
        home = folder / name
        home.mkdir(mode=0o700)
        doc = rig.document(home, broker.port, fake.queue_url(), fake.endpoint, changes)
        made = rig.Bridge(home, doc, args=args, **options)
        parts.append(made)
        if seed:
            made.seed()
        return made.start() if start else made
    return make


@pytest.fixture
def proxy(broker, parts):
    made = Proxy(broker.port)
    parts.append(made)
    return made


@pytest.fixture
def gateway(broker, parts):
    made = WebSocketGateway(broker.port)
    parts.append(made)
    return made


@pytest.fixture(scope="session")
def script_folder():
    return pathlib.Path(rig.ROOT) / "scripts"


@pytest.fixture
def new_cluster(folder, broker, fake, dynamodb, parts):
    def make(changes=None, cadence=None, prepare=True, start=True, **options):
        doc = cluster.document(folder, broker.port, fake.queue_url(), fake.endpoint, changes, cadence)
        made = cluster.Cluster(folder, doc, dynamodb, **options)
        parts.append(made)
        if prepare:
            made.prepare()
        if start:
            made.start()
            owner = made.wait_owner()["owner"].partition("#")[0]
            if not options.get("same_id"):
                made.wait_active(owner)
        return made
    return make
