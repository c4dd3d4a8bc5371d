"""Probes of ConsumedCapacity, which the cost of a message is measured by."""

from dynamodb_probes import API, GUIDE, N, S, probe, update_of

SIZES = GUIDE + "CapacityUnitCalculations.html"
UNITS = GUIDE + "read-write-operations.html"
INDEXES = GUIDE + "GSI.html"
TRANSACTIONS = GUIDE + "transaction-apis.html"
INDEXED = {"claim_sort": S("1"), "record_id": S("r"), "has_expiry": S("1"), "expires_at": N(5)}


def units(answer):
    """{"total", "table", index: units} of an answer to INDEXES."""
    consumed = answer.get("ConsumedCapacity") or {}
    consumed = consumed[0] if isinstance(consumed, list) and consumed else consumed
    if not consumed:
        return "none"
    out = {"total": float(consumed.get("CapacityUnits", 0)),
           "table": float(consumed.get("Table", {}).get("CapacityUnits", 0))}
    for name, part in sorted((consumed.get("GlobalSecondaryIndexes") or {}).items()):
        out[name] = float(part["CapacityUnits"])
    return out


def total(answer):
    told = units(answer)
    return told if isinstance(told, str) else told["total"]


def sized(key, size):
    """An item of exactly so many bytes."""
    used = sum(len(n) + len(v["S"]) for n, v in key.items()) + 1
    return {**key, "x": S("x" * (size - used))}


ALL = {"ReturnConsumedCapacity": "INDEXES"}


@probe("Capacity", "TOTAL; NONE", "TOTAL has no table and no index", API + "PutItem.html",
       ["CapacityUnits TableName", "none"])
def total_only(b):
    answer = b.put(b.key(), ReturnConsumedCapacity="TOTAL")
    return [" ".join(sorted(answer.get("ConsumedCapacity", {}))), units(b.put(b.key()))]


@probe("Capacity", "put of 1,024 and of 1,025 bytes, in no index", "1 unit for each KB begun", UNITS, [1.0, 2.0])
def put_sizes(b):
    return [total(b.put(sized(b.key(), size), **ALL)) for size in (1024, 1025)]


@probe("Capacity", "size of a number of 19 digits, of a boolean, of a map with one member",
       "1 + a byte for two digits; 1; 3 + 1 each", SIZES, [1.0, 2.0, 1.0, 2.0, 1.0, 2.0])
def value_sizes(b):
    out = []
    for value, size in ((N("1234567890123456789"), 11), ({"BOOL": True}, 1), ({"M": {"k": S("v")}}, 6)):
        for limit in (1024, 1025):
            item = sized(b.key(), limit - 1 - size)
            out.append(total(b.put({**item, "v": value}, **ALL)))
    return out


@probe("Capacity", "put over a larger item", "the larger of the two counts", UNITS, 3.0)
def put_over(b):
    key = b.key()
    b.put(sized(key, 3000))
    return total(b.put(key, **ALL))


@probe("Capacity", "put into three indexes", "each entry of an index is a write more", INDEXES,
       {"total": 4.0, "table": 1.0, "ClaimIndex": 1.0, "ExpiryIndex": 1.0, "RecordIDIndex": 1.0})
def put_indexed(b):
    return units(b.put({**b.key(), **INDEXED}, **ALL))


@probe("Capacity", "put of 2,500 bytes into three indexes", "an entry costs by what is projected", INDEXES,
       {"total": 8.0, "table": 3.0, "ClaimIndex": 3.0, "ExpiryIndex": 1.0, "RecordIDIndex": 1.0})
def put_indexed_large(b):
    return units(b.put({**sized(b.key(), 2500), **INDEXED}, **ALL))


def change(b, expression, values=None):
    key = b.key()
    b.put({**key, **INDEXED, "status": S("pending")})
    return units(b.update(key, expression, values, **ALL))


@probe("Capacity", "update of an attribute that only an ALL index projects", "that entry is written once", INDEXES,
       {"total": 2.0, "table": 1.0, "ClaimIndex": 1.0})
def update_projected(b):
    return change(b, "SET claimed_by = :v", {":v": S("a")})


@probe("Capacity", "update of an index's sort key", "the old entry deleted, the new one put", INDEXES,
       {"total": 3.0, "table": 1.0, "ClaimIndex": 2.0})
def update_index_key(b):
    return change(b, "SET claim_sort = :v", {":v": S("2")})


@probe("Capacity", "REMOVE of two index keys", "each entry deleted once", INDEXES,
       {"total": 3.0, "table": 1.0, "ClaimIndex": 1.0, "ExpiryIndex": 1.0})
def remove_index_keys(b):
    return change(b, "REMOVE claim_sort, has_expiry")


@probe("Capacity", "update that changes nothing", "the table's write counts, no index changes", INDEXES,
       {"total": 1.0, "table": 1.0})
def update_nothing(b):
    return change(b, "SET claim_sort = :v", {":v": S("1")})


@probe("Capacity", "delete out of three indexes; of nothing", "each entry deleted once; 1 unit for nothing",
       INDEXES, [{"total": 4.0, "table": 1.0, "ClaimIndex": 1.0, "ExpiryIndex": 1.0, "RecordIDIndex": 1.0}, 1.0])
def delete_units(b):
    key = b.key()
    b.put({**key, **INDEXED})
    first, second = (b.c.delete_item(TableName=b.TABLE, Key=key, **ALL) for _ in range(2))
    return [units(first), total(second)]


@probe("Capacity", "update of a 3,000-byte item's counter", "the whole item counts", UNITS, 3.0)
def update_large(b):
    key = b.key()
    b.put(sized(key, 3000))
    return total(b.update(key, "ADD n :one", {":one": N(1)}, **ALL))


@probe("Capacity", "transaction of one put into three indexes", "the item twice; for indexes see above",
       TRANSACTIONS, {"total": 5.0, "table": 2.0, "ClaimIndex": 1.0, "ExpiryIndex": 1.0, "RecordIDIndex": 1.0})
def transaction_units(b):
    return units(b.transact(("Put", {"Item": {**b.key(), **INDEXED}}), **ALL))


@probe("Capacity", "transaction of a ConditionCheck and an update, 1 KB each", "a check costs as a write",
       TRANSACTIONS, 4.0)
def check_units(b):
    check, update = b.key(), b.key()
    b.put(check)
    return total(b.transact(("ConditionCheck", {"Key": check, "ConditionExpression": "attribute_exists(SK)"}),
                            update_of(update, "SET a = :v", {":v": N(1)}), **ALL))


@probe("Capacity", "a transaction again under its token", "read units for the items, 2 for each 4 KB",
       API + "TransactWriteItems.html", 2.0)
def replay_units(b):
    token, key = b.name("token"), b.key()
    for _ in range(2):
        answer = b.transact(("Put", {"Item": key}), ClientRequestToken=token, **ALL)
    return total(answer)


@probe("Capacity", "get of 4,096 and 4,097 bytes, consistent; eventual", "1 for each 4 KB begun; half", UNITS,
       [1.0, 2.0, 0.5, 1.0])
def get_units(b):
    out, keys = [], [b.key() for _ in range(2)]
    for key, size in zip(keys, (4096, 4097)):
        b.put(sized(key, size))
    for consistent in (True, False):
        out += [total(b.c.get_item(TableName=b.TABLE, Key=k, ConsistentRead=consistent, **ALL)) for k in keys]
    return out


@probe("Capacity", "get of nothing, consistent; eventual", "as the smallest item", UNITS, [1.0, 0.5])
def get_nothing(b):
    return [total(b.c.get_item(TableName=b.TABLE, Key=b.key(), ConsistentRead=c, **ALL)) for c in (True, False)]


@probe("Capacity", "query of 10 items of 1,000 bytes, consistent; eventual; filtered to none",
       "their sum, before the filter", UNITS, [3.0, 1.5, 1.5])
def query_units(b):
    partition = b.name()
    for i in range(10):
        b.put(sized({"PK": S(partition), "SK": S(str(i))}, 1000))
    return [total(b.query(partition, **more, **ALL)) for more in
            ({"ConsistentRead": True}, {}, {"FilterExpression": "attribute_exists(nothing)"})]


@probe("Capacity", "query of nothing, consistent; eventual", "as the smallest", UNITS, [1.0, 0.5])
def query_nothing(b):
    return [total(b.query(b.name(), ConsistentRead=c, **ALL)) for c in (True, False)]


@probe("Capacity", "query of an index: table, index", "the index alone is read", INDEXES,
       {"total": 0.5, "table": 0.0, "ClaimIndex": 0.5})
def index_query_units(b):
    key = b.key()
    b.put({**key, **INDEXED})
    return units(b.query(key["PK"]["S"], IndexName="ClaimIndex", **ALL))


@probe("Capacity", "Select COUNT over 10 items of 1,000 bytes", "as if they were returned", API + "Query.html", 1.5)
def count_units(b):
    partition = b.name()
    for i in range(10):
        b.put(sized({"PK": S(partition), "SK": S(str(i))}, 1000))
    return total(b.query(partition, Select="COUNT", **ALL))
