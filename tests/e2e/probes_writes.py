"""Probes of tables, values, conditions, updates and transactions."""

import time

from dynamodb_probes import API, GUIDE, N, S, code_of, failure_of, probe, update_of

LIMITS = GUIDE + "Constraints.html"
TYPES = GUIDE + "HowItWorks.NamingRulesDataTypes.html"
EXPRESSIONS = GUIDE + "Expressions.OperatorsAndFunctions.html"
UPDATES = GUIDE + "Expressions.UpdateExpressions.html"
DIGITS_38 = "12345678901234567890123456789012345678"
ITEM_BYTES_MAX = 400 * 1024

# --- tables


@probe("Tables", "status in CreateTable's answer", "CREATING until the table can be used", API + "CreateTable.html",
       "CREATING")
def create_status(b):
    return b.created["TableDescription"]["TableStatus"]


@probe("Tables", "the same table once more", "names are unique in account and region", API + "CreateTable.html",
       "ResourceInUseException")
def create_again(b):
    return code_of(lambda: b.create_plain(b.PLAIN))


@probe("Tables", "DescribeTable: status, billing, keys, projections of indexes", "all are told",
       API + "DescribeTable.html",
       ["ACTIVE", "PAY_PER_REQUEST", ["PK", "SK"],
        {"ClaimIndex": "ALL", "ExpiryIndex": "KEYS_ONLY", "RecordIDIndex": "KEYS_ONLY"}])
def describe_table(b):
    t = b.c.describe_table(TableName=b.TABLE)["Table"]
    indexes = {i["IndexName"]: i["Projection"]["ProjectionType"] for i in t["GlobalSecondaryIndexes"]}
    return [t["TableStatus"], t["BillingModeSummary"]["BillingMode"], [k["AttributeName"] for k in t["KeySchema"]],
            dict(sorted(indexes.items()))]


@probe("Tables", "IndexStatus of each index", "ACTIVE once it can be used", API + "DescribeTable.html", ["ACTIVE"])
def index_status(b):
    t = b.c.describe_table(TableName=b.TABLE)["Table"]
    return sorted({i.get("IndexStatus", "absent") for i in t["GlobalSecondaryIndexes"]})


@probe("Tables", "a table that is not there: describe, get, query", "all refuse", API + "DescribeTable.html",
       ["ResourceNotFoundException"] * 3)
def missing_table(b):
    return [code_of(lambda: b.c.describe_table(TableName="nobody")),
            code_of(lambda: b.c.get_item(TableName="nobody", Key={"PK": S("a")})),
            code_of(lambda: b.c.query(TableName="nobody", KeyConditionExpression="PK = :a",
                                      ExpressionAttributeValues={":a": S("a")}))]


@probe("Tables", "query of an index that is not there", "the index is named in a ValidationException",
       API + "Query.html", "ValidationException")
def missing_index(b):
    return code_of(lambda: b.query("a", IndexName="NoSuchIndex"))


@probe("Tables", "DeletionProtectionEnabled: told, and DeleteTable", "a protected table can't be deleted",
       API + "DeleteTable.html", [True, "ValidationException"])
def deletion_protection(b):
    name = b.name("probe-protected")
    b.create_plain(name, DeletionProtectionEnabled=True)
    told = b.c.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled", False)
    return [told, code_of(lambda: b.c.delete_table(TableName=name))]


@probe("Tables", "SSESpecification with a KMS key", "SSEDescription says ENABLED", API + "DescribeTable.html",
       "ENABLED")
def encryption(b):
    name = b.name("probe-encrypted")
    b.create_plain(name, SSESpecification={"Enabled": True, "SSEType": "KMS"})
    return b.c.describe_table(TableName=name)["Table"].get("SSEDescription", {}).get("Status", "absent")


@probe("Tables", "DescribeTimeToLive before and after enabling; enabling twice", "no second change within an hour",
       API + "UpdateTimeToLive.html", ["DISABLED", "ENABLED", "ttl", "ValidationException"])
def time_to_live(b):
    name = b.name("probe-ttl")
    b.create_plain(name)
    before = b.c.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"]
    enable = lambda: b.c.update_time_to_live(TableName=name,
                                             TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
    enable()
    after = b.c.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    status = after["TimeToLiveStatus"].replace("ENABLING", "ENABLED")
    return [before, status, after.get("AttributeName"), code_of(enable)]


@probe("Tables", "an item past its ttl, read two seconds later",
       "items stay readable until they are deleted, within days", GUIDE + "TTL.html", "still there", slow=True)
def expired_item(b):
    name = b.name("probe-ttl")
    b.create_plain(name)
    b.c.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
    b.c.put_item(TableName=name, Item={"PK": S("a"), "ttl": N(int(time.time()) - 3600)})
    time.sleep(2)
    return "still there" if "Item" in b.c.get_item(TableName=name, Key={"PK": S("a")}) else "gone"


@probe("Tables", "DescribeContinuousBackups", "tells whether point-in-time recovery is on",
       API + "DescribeContinuousBackups.html", "DISABLED")
def continuous_backups(b):
    told = []

    def ask():
        answer = b.c.describe_continuous_backups(TableName=b.PLAIN)["ContinuousBackupsDescription"]
        told.append(answer["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"])
    code = code_of(ask)
    return told[0] if code == "ok" else code

# --- values


@probe("Values", "empty string and empty binary in an attribute", "allowed outside keys", TYPES, ["ok", "", b""])
def empty_values(b):
    key = b.key()
    code = code_of(lambda: b.put({**key, "s": S(""), "b": {"B": b""}}))
    item = b.get(key) or {}
    return [code, item.get("s", {}).get("S"), item.get("b", {}).get("B")]


@probe("Values", "empty string as hash, range and index key", "keys must not be empty", TYPES,
       ["ValidationException"] * 3)
def empty_keys(b):
    return [code_of(lambda: b.put({"PK": S(""), "SK": S("a")})), code_of(lambda: b.put({"PK": S("a"), "SK": S("")})),
            code_of(lambda: b.put({**b.key(), "record_id": S("")}))]


@probe("Values", "empty set; set with a value twice", "both refused", TYPES, ["ValidationException"] * 2)
def bad_sets(b):
    return [code_of(lambda: b.put({**b.key(), "s": {"SS": []}})),
            code_of(lambda: b.put({**b.key(), "s": {"SS": ["a", "a"]}}))]


@probe("Values", "all 256 bytes in a binary", "kept as they are", TYPES, "kept")
def all_bytes(b):
    key = b.key()
    b.put({**key, "b": {"B": bytes(range(256))}})
    return "kept" if b.get(key)["b"]["B"] == bytes(range(256)) else "changed"


@probe("Values", "U+0000, quotes, emoji, U+FFFF in a string", "kept as they are", TYPES, "kept")
def odd_text(b):
    key, text = b.key(), "\x00\"\\/\u2028\U0001f600\uffff"
    b.put({**key, "s": S(text)})
    return "kept" if b.get(key)["s"]["S"] == text else "changed"


@probe("Values", "nested lists and maps, booleans, null", "kept as they are", TYPES, "kept")
def nested(b):
    key = b.key()
    value = {"M": {"l": {"L": [{"BOOL": True}, {"NULL": True}, {"M": {}}, {"L": []}]}, "n": N(5)}}
    b.put({**key, "m": value})
    return "kept" if b.get(key)["m"] == value else "changed"


@probe("Values", "38 digits; 39 digits", "38 digits are exact, more refused", TYPES,
       [DIGITS_38, "ValidationException"])
def digits(b):
    key = b.key()
    b.put({**key, "n": N(DIGITS_38)})
    return [b.get(key)["n"]["N"], code_of(lambda: b.put({**b.key(), "n": N("1" + DIGITS_38)}))]


@probe("Values", "0012.50, 1e3, -0 as read back", "leading and trailing zeros are trimmed", TYPES,
       ["12.5", "1000", "0"])
def number_form(b):
    key = b.key()
    b.put({**key, "a": N("0012.50"), "b": N("1e3"), "c": N("-0")})
    item = b.get(key)
    return [item[n]["N"] for n in "abc"]


@probe("Values", "condition n < :v at 2^53 and at 2^64-1", "compared exactly", TYPES, ["ok", "ok"])
def exact_comparison(b):
    out = []
    for low, high in ((2**53, 2**53 + 1), (2**64 - 2, 2**64 - 1)):
        key = b.key()
        b.put({**key, "n": N(low)})
        out.append(code_of(lambda: b.update(key, "SET n = :v", {":v": N(high)}, ConditionExpression="n < :v")))
    return out


@probe("Values", "ADD 1 to 2^63", "exact", UPDATES, str(2**63 + 1))
def exact_addition(b):
    key = b.key()
    b.put({**key, "n": N(2**63)})
    return b.update(key, "ADD n :one", {":one": N(1)}, ReturnValues="UPDATED_NEW")["Attributes"]["n"]["N"]


@probe("Values", "an item of 409,600 bytes; one byte more", "400 KB with names", LIMITS,
       ["ok", "ValidationException"])
def item_limit(b):
    def item(extra):
        key = b.key()
        used = sum(len(n) + len(v["S"]) for n, v in key.items()) + 1
        return {**key, "x": S("x" * (ITEM_BYTES_MAX - used + extra))}
    return [code_of(lambda: b.put(item(0))), code_of(lambda: b.put(item(1)))]


@probe("Values", "UpdateItem that grows an item beyond 400 KB", "refused, the item stays", LIMITS,
       ["ValidationException", "old"])
def update_limit(b):
    key = b.key()
    b.put({**key, "y": S("old"), "x": S("x" * 300000)})
    code = code_of(lambda: b.update(key, "SET y = :y", {":y": S("y" * 200000)}))
    return [code, b.get(key)["y"]["S"][:3]]


@probe("Values", "hash key of 2048 and 2049 bytes, range key of 1024 and 1025", "the limits", LIMITS,
       ["ok", "ValidationException", "ok", "ValidationException"])
def key_limits(b):
    return [code_of(lambda: b.put({"PK": S("k" * h), "SK": S("k" * r)}))
            for h, r in ((2048, 1), (2049, 1), (1, 1024), (1, 1025))]

# --- conditions


@probe("Conditions", "attribute_not_exists(SK) over an item", "refused, the item stays",
       GUIDE + "Expressions.ConditionExpressions.html", ["ConditionalCheckFailedException", "first"])
def put_once(b):
    key = b.key()
    b.put({**key, "v": S("first")})
    return [code_of(lambda: b.put({**key, "v": S("second")}, ConditionExpression="attribute_not_exists(SK)")),
            b.get(key)["v"]["S"]]


@probe("Conditions", "ReturnValuesOnConditionCheckFailure ALL_OLD: put, update, delete; without it",
       "Item in the error", API + "PutItem.html", ["old", "old", "old", None])
def item_of_failure(b):
    key, condition = {**b.key()}, {"ConditionExpression": "attribute_not_exists(SK)"}
    b.put({**key, "v": S("old")})
    ask = {**condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    failures = [failure_of(lambda: b.put({**key, "v": S("new")}, **ask)),
                failure_of(lambda: b.update(key, "SET v = :v", {":v": S("new")}, **ask)),
                failure_of(lambda: b.c.delete_item(TableName=b.TABLE, Key=key, **ask)),
                failure_of(lambda: b.put({**key, "v": S("new")}, **condition))]
    return [f.get("Item", {}).get("v", {}).get("S") for f in failures]


@probe("Conditions", "failed condition on an item that is not there, ALL_OLD", "no Item in the error",
       API + "UpdateItem.html", ["ConditionalCheckFailedException", "no Item"])
def item_of_nothing(b):
    failure = failure_of(lambda: b.update(b.key(), "SET v = :v", {":v": S("new")},
                                          ConditionExpression="attribute_exists(SK)",
                                          ReturnValuesOnConditionCheckFailure="ALL_OLD"))
    return [failure["Error"]["Code"], "Item" if "Item" in failure else "no Item"]


@probe("Conditions", "a < :x, a = :x, a <> :x where a is missing",
       "a missing attribute equals and precedes nothing", EXPRESSIONS,
       ["ConditionalCheckFailedException", "ConditionalCheckFailedException", "ok"])
def missing_attribute(b):
    key = b.key()
    b.put(key)
    return [code_of(lambda: b.update(key, "SET v = :x", {":x": N(1)}, ConditionExpression=f"a {op} :x"))
            for op in ("<", "=", "<>")]


@probe("Conditions", "n < :v where the stored one is a string", "types never match", EXPRESSIONS,
       "ConditionalCheckFailedException")
def other_type(b):
    key = b.key()
    b.put({**key, "a": S("1")})
    return code_of(lambda: b.update(key, "SET v = :x", {":x": N(2)}, ConditionExpression="a < :x"))


@probe("Conditions", "x OR y AND z without parentheses", "AND binds closer than OR", EXPRESSIONS, "ok")
def precedence(b):
    key = b.key()
    b.put({**key, "a": N(1)})
    return code_of(lambda: b.update(key, "SET v = :one", {":one": N(1), ":two": N(2)},
                                    ConditionExpression="a = :one OR a = :two AND a = :two"))


@probe("Conditions", "BETWEEN, IN, begins_with, contains, size, attribute_type, NOT", "all known", EXPRESSIONS,
       ["ok"] * 7)
def functions(b):
    key = b.key()
    b.put({**key, "a": S("abc")})
    tried = (("a BETWEEN :a AND :z", {":a": S("a"), ":z": S("z")}), ("a IN (:a, :z)", {":a": S("abc"), ":z": S("z")}),
             ("begins_with(a, :a)", {":a": S("ab")}), ("contains(a, :a)", {":a": S("bc")}),
             ("size(a) = :a", {":a": N(3)}), ("attribute_type(a, :a)", {":a": S("S")}), ("NOT a = :a", {":a": S("z")}))
    return [code_of(lambda: b.update(key, "SET v = :a", values, ConditionExpression=condition))
            for condition, values in tried]


@probe("Conditions", "status and ttl written plainly in an expression", "reserved words need a # name",
       GUIDE + "ReservedWords.html", ["ValidationException"] * 2)
def reserved_words(b):
    return [code_of(lambda: b.update(b.key(), f"SET {word} = :v", {":v": S("x")})) for word in ("status", "ttl")]


@probe("Conditions", "a value, a name that no expression uses", "refused",
       GUIDE + "Expressions.ExpressionAttributeValues.html", ["ValidationException"] * 2)
def unused(b):
    return [code_of(lambda: b.update(b.key(), "SET a = :v", {":v": N(1), ":unused": N(2)})),
            code_of(lambda: b.update(b.key(), "SET a = :v", {":v": N(1)}, ExpressionAttributeNames={"#unused": "b"}))]

# --- updates


@probe("Updates", "SET if_not_exists, n + :x, ADD to nothing and to a set, DELETE of a set's last, REMOVE",
       "an empty set goes", UPDATES, {"a": "1", "n": "6", "c": "5", "s": "a+b", "t": "gone", "r": "gone"})
def update_kinds(b):
    key = b.key()
    b.put({**key, "n": N(1), "s": {"SS": ["a"]}, "t": {"SS": ["x"]}, "r": S("r")})
    new = b.update(key, "SET a = if_not_exists(a, :one), n = n + :five ADD c :five, s :b DELETE t :x REMOVE r",
                   {":one": N(1), ":five": N(5), ":b": {"SS": ["b"]}, ":x": {"SS": ["x"]}},
                   ReturnValues="ALL_NEW")["Attributes"]
    return {"a": new["a"]["N"], "n": new["n"]["N"], "c": new["c"]["N"], "s": "+".join(sorted(new["s"]["SS"])),
            "t": "there" if "t" in new else "gone", "r": "there" if "r" in new else "gone"}


@probe("Updates", "ReturnValues UPDATED_NEW, UPDATED_OLD, ALL_OLD, ALL_NEW", "only what changed, or all",
       API + "UpdateItem.html", ["a", "a", "PK SK a b", "PK SK a b"])
def return_values(b):
    out = []
    for kind in ("UPDATED_NEW", "UPDATED_OLD", "ALL_OLD", "ALL_NEW"):
        key = b.key()
        b.put({**key, "a": N(1), "b": N(2)})
        answer = b.update(key, "SET a = :v", {":v": N(9)}, ReturnValues=kind)
        out.append(" ".join(sorted(answer.get("Attributes", {}))))
    return out


@probe("Updates", "UpdateItem of an item that is not there", "makes it", API + "UpdateItem.html", "made")
def upsert(b):
    key = b.key()
    b.update(key, "SET a = :v", {":v": N(1)})
    return "made" if b.get(key) else "nothing"


@probe("Updates", "DeleteItem ALL_OLD of an item, of nothing", "Attributes only where there was one",
       API + "DeleteItem.html", ["Attributes", "none"])
def delete_old(b):
    key = b.key()
    b.put(key)
    answers = [b.c.delete_item(TableName=b.TABLE, Key=key, ReturnValues="ALL_OLD") for _ in range(2)]
    return ["Attributes" if answer.get("Attributes") else "none" for answer in answers]


@probe("Updates", "SET of a key; of a path twice", "refused", UPDATES, ["ValidationException"] * 2)
def bad_updates(b):
    key = b.key()
    return [code_of(lambda: b.update(key, "SET PK = :v", {":v": S("x")})),
            code_of(lambda: b.update(key, "SET a = :v, a = :v", {":v": S("x")}))]


@probe("Updates", "SET of an index key to another type", "refused", GUIDE + "GSI.html", "ValidationException")
def index_key_type(b):
    return code_of(lambda: b.update(b.key(), "SET claim_sort = :v", {":v": N(1)}))

# --- transactions


def put_of(key, **more):
    return ("Put", {"Item": {**key, "v": S("new")}, **more})


@probe("Transactions", "second of three fails its condition: reasons, and what is stored",
       "all or nothing; one reason for each action", API + "TransactWriteItems.html",
       ["TransactionCanceledException", ["None", "ConditionalCheckFailed", "None"], "old", "nothing stored"])
def cancelled(b):
    keys = [b.key() for _ in range(3)]
    b.put({**keys[1], "v": S("old")})
    refused = put_of(keys[1], ConditionExpression="attribute_not_exists(SK)",
                     ReturnValuesOnConditionCheckFailure="ALL_OLD")
    failure = failure_of(lambda: b.transact(put_of(keys[0]), refused, put_of(keys[2])))
    reasons = failure.get("CancellationReasons", [])
    return [failure["Error"]["Code"], [r.get("Code") for r in reasons],
            reasons[1].get("Item", {}).get("v", {}).get("S") if len(reasons) > 1 else None,
            "stored" if b.get(keys[0]) or b.get(keys[2]) else "nothing stored"]


@probe("Transactions", "two failed conditions", "both are told", API + "TransactWriteItems.html",
       ["ConditionalCheckFailed"] * 2)
def cancelled_twice(b):
    keys = [b.key() for _ in range(2)]
    failure = failure_of(lambda: b.transact(*(update_of(
        k, "SET v = :v", {":v": S("x")}, ConditionExpression="attribute_exists(SK)") for k in keys)))
    return [r.get("Code") for r in failure.get("CancellationReasons", [])]


@probe("Transactions", "ConditionCheck with Update and Delete", "applied together", API + "TransactWriteItems.html",
       ["ok", "1", "gone"])
def mixed(b):
    check, update, delete = (b.key() for _ in range(3))
    b.put(check)
    b.put(delete)
    code = code_of(lambda: b.transact(
        ("ConditionCheck", {"Key": check, "ConditionExpression": "attribute_exists(SK)"}),
        update_of(update, "ADD n :one", {":one": N(1)}),
        ("Delete", {"Key": delete})))
    return [code, (b.get(update) or {}).get("n", {}).get("N"), "there" if b.get(delete) else "gone"]


@probe("Transactions", "the same ClientRequestToken twice: second answer, counter",
       "applied once, answered as a success", API + "TransactWriteItems.html", ["ok", "1"])
def token_twice(b):
    key, token = b.key(), b.name("token")
    send = lambda: b.transact(update_of(key, "ADD n :one", {":one": N(1)}), ClientRequestToken=token)
    send()
    return [code_of(send), b.get(key)["n"]["N"]]


@probe("Transactions", "the same token, another put", "refused within ten minutes", API + "TransactWriteItems.html",
       "IdempotentParameterMismatchException")
def token_mismatch(b):
    token = b.name("token")
    b.transact(put_of(b.key()), ClientRequestToken=token)
    return code_of(lambda: b.transact(put_of(b.key()), ClientRequestToken=token))


@probe("Transactions", "the token of a cancelled transaction, when its condition has become true",
       "what failed may be sent again", API + "TransactWriteItems.html", ["TransactionCanceledException", "ok"])
def token_after_failure(b):
    key, other, token = b.key(), b.key(), b.name("token")
    check = ("ConditionCheck", {"Key": key, "ConditionExpression": "attribute_exists(SK)"})
    send = lambda: b.transact(put_of(other), check, ClientRequestToken=token)
    first = code_of(send)
    b.put(key)
    return [first, code_of(send)]


@probe("Transactions", "two actions on one item; 100 and 101 actions", "one action for an item, 100 in all",
       API + "TransactWriteItems.html", ["ValidationException", "ok", "ValidationException"])
def transaction_limits(b):
    key = b.key()
    return [code_of(lambda: b.transact(put_of(key), ("Delete", {"Key": key}))),
            *(code_of(lambda: b.transact(*(put_of(b.key()) for _ in range(n)))) for n in (100, 101))]


@probe("Transactions", "10 and 11 puts of 390,000 bytes", "4 MB in all", API + "TransactWriteItems.html",
       ["ok", "ValidationException"])
def transaction_bytes(b):
    large = lambda: ("Put", {"Item": {**b.key(), "x": S("x" * 390000)}})
    return [code_of(lambda: b.transact(*(large() for _ in range(n)))) for n in (10, 11)]
