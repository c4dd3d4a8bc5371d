"""Each probe on each emulator: it answers as AWS's documentation says, or differs exactly as written here and in
docs/emulators.md. What takes long runs with GB_SLOW=1."""

import os

import pytest

import dynamodb_probes
import probes_reads  # noqa: F401
import probes_units  # noqa: F401
import probes_writes  # noqa: F401
import rig
from dynamodb_probes import PROBES
from emulators import KINDS, DynamoDb, missing

# What an emulator answers where it is not what AWS answers.
DIFFERENCES = {
    "dynoxide": {
        "time_to_live": ["DISABLED", "ENABLED", "ttl", "ok"],
        "continuous_backups": "UnknownOperationException",
    },
    "moto": {
        "create_status": "ACTIVE",
        "missing_index": "ResourceNotFoundException",
        "time_to_live": ["DISABLED", "ENABLED", "ttl", "ok"],
        "bad_sets": ["ValidationException", "ok"],
        "digits": ["12345678901234567890123456789012345678", "ok"],
        "number_form": ["0012.50", "1e3", "-0"],
        "item_limit": ["ValidationException", "ValidationException"],
        "other_type": "500",
        "token_twice": ["ok", "2"],
        "token_mismatch": "ok",
        "transaction_bytes": ["ok", "ok"],
        "limit_at_the_end": ["not set"],
        "filter_on_keys": ["ok", "ok"],
        "limit_zero": "ok",
        "refused_requests": ["ok", "status 500"],
        "put_sizes": [1.0, 1.0],
        "value_sizes": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        "put_over": 1.0,
        "put_indexed": {"total": 1.0, "table": 1.0},
        "put_indexed_large": {"total": 1.0, "table": 1.0},
        "update_projected": {"total": 0.5, "table": 0.0},
        "update_index_key": {"total": 0.5, "table": 0.0},
        "remove_index_keys": {"total": 0.5, "table": 0.0},
        "update_nothing": {"total": 0.5, "table": 0.0},
        "delete_units": [{"total": 1.0, "table": 1.0}, 1.0],
        "update_large": 0.5,
        "transaction_units": "none",
        "check_units": "none",
        "replay_units": "none",
        "get_units": [0.5, 0.5, 0.5, 0.5],
        "get_nothing": [0.5, 0.5],
        "query_units": [1.0, 1.0, 1.0],
        "query_nothing": [1.0, 1.0],
        "index_query_units": {"total": 1.0, "table": 1.0},
        "count_units": 1.0,
    },
}


@pytest.fixture(scope="module", params=KINDS)
def bench(request, tmp_path_factory):
    if missing(request.param):
        pytest.skip(missing(request.param))
    database = DynamoDb(tmp_path_factory.mktemp(request.param), request.param)
    made = dynamodb_probes.Bench(database.connect())
    made.kind = request.param
    yield made
    database.close()


@pytest.mark.parametrize("name", PROBES)
def test_probe(bench, name):
    if PROBES[name].slow and not os.environ.get("GB_SLOW"):
        pytest.skip("slow: GB_SLOW=1 runs it")
    assert PROBES[name].run(bench) == DIFFERENCES[bench.kind].get(name, PROBES[name].aws)


def test_differences_are_of_probes_and_differ():
    for kind in KINDS:
        for name, value in DIFFERENCES[kind].items():
            assert value != PROBES[name].aws, f"{kind}: {name}"


def test_the_page_says_what_is_tested():
    page = (rig.ROOT / "docs" / "emulators.md").read_text()
    assert page == dynamodb_probes.document(DIFFERENCES), "run tests/e2e/dynamodb_probes.py, see the page's first lines"
