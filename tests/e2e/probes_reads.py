"""Probes of Query, Scan and what every answer carries."""

import json
import urllib.error
import urllib.request
import zlib

from dynamodb_probes import API, GUIDE, N, S, code_of, probe

QUERY = GUIDE + "Query.html"


@probe("Reads", "order of sort keys, ascending and descending", "by UTF-8 bytes", API + "Query.html",
       ["A Z a é 😀", "😀 é a Z A"])
def sort_order(b):
    partition = b.name()
    for key in ("é", "a", "😀", "Z", "A"):
        b.put({"PK": S(partition), "SK": S(key)})
    return [" ".join(i["SK"]["S"] for i in b.query(partition, ScanIndexForward=f)["Items"]) for f in (True, False)]


@probe("Reads", "begins_with and BETWEEN on the sort key", "as conditions of a Query", QUERY, [2, 2])
def key_conditions(b):
    partition = b.name()
    for key in ("OUTBOX#1", "OUTBOX#2", "FENCE"):
        b.put({"PK": S(partition), "SK": S(key)})
    ask = lambda condition, **values: b.c.query(
        TableName=b.TABLE, KeyConditionExpression="PK = :pk AND " + condition,
        ExpressionAttributeValues={":pk": S(partition), **{f":{n}": S(v) for n, v in values.items()}})["Count"]
    return [ask("begins_with(SK, :x)", x="OUTBOX#"), ask("SK BETWEEN :x AND :y", x="FENCE", y="OUTBOX#1")]


@probe("Reads", "Limit 2 of 5 with a filter: Count, ScannedCount", "the limit counts before the filter",
       API + "Query.html", [0, 2])
def limit_and_filter(b):
    partition = b.fill(5)
    page = b.query(partition, Limit=2, FilterExpression="attribute_exists(nothing)")
    return [page["Count"], page["ScannedCount"]]


@probe("Reads", "LastEvaluatedKey when Limit is the number of items",
       "set where the limit stopped the query, more or not", API + "Query.html", ["set", 0, "not set"])
def limit_at_the_end(b):
    partition = b.fill(2)
    page = b.query(partition, Limit=2)
    if "LastEvaluatedKey" not in page:
        return ["not set"]
    rest = b.query(partition, Limit=2, ExclusiveStartKey=page["LastEvaluatedKey"])
    return ["set", rest["Count"], "set" if "LastEvaluatedKey" in rest else "not set"]


@probe("Reads", "pages of an index: members of LastEvaluatedKey, all items once", "keys of index and table",
       GUIDE + "GSI.html", ["PK SK claim_sort", "abcde"])
def index_pages(b):
    partition = b.fill(5, claim_sort=S("same"))
    seen, more, members = "", {}, ""
    for _ in range(10):
        page = b.query(partition, IndexName="ClaimIndex", Limit=2, **more)
        seen += "".join(i["SK"]["S"] for i in page["Items"])
        if "LastEvaluatedKey" not in page:
            break
        members = " ".join(sorted(page["LastEvaluatedKey"]))
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    return [members, "".join(sorted(seen))]


@probe("Reads", "going on in an index after the item of the key has left it", "the key is a position",
       API + "Query.html", "cd")
def index_page_of_the_gone(b):
    partition = b.name()
    for name in "abcd":
        b.put({"PK": S(partition), "SK": S(name), "claim_sort": S(name)})
    page = b.query(partition, IndexName="ClaimIndex", Limit=2)
    b.update({"PK": S(partition), "SK": S("b")}, "REMOVE claim_sort")
    rest = b.query(partition, IndexName="ClaimIndex", ExclusiveStartKey=page["LastEvaluatedKey"])
    return "".join(i["SK"]["S"] for i in rest["Items"])


@probe("Reads", "REMOVE of an index key", "the item leaves that index alone", GUIDE + "GSI.html", [0, 1])
def sparse_index(b):
    key = b.key()
    b.put({**key, "claim_sort": S("1"), "record_id": key["PK"]})
    b.update(key, "REMOVE claim_sort")
    left = b.c.query(TableName=b.TABLE, IndexName="RecordIDIndex", KeyConditionExpression="record_id = :r",
                     ExpressionAttributeValues={":r": key["PK"]})
    return [b.query(key["PK"]["S"], IndexName="ClaimIndex")["Count"], left["Count"]]


@probe("Reads", "attributes out of a KEYS_ONLY index", "keys of table and index", GUIDE + "GSI.html",
       "PK SK record_id")
def keys_only(b):
    key = b.key()
    b.put({**key, "record_id": key["PK"], "other": S("x")})
    page = b.c.query(TableName=b.TABLE, IndexName="RecordIDIndex", KeyConditionExpression="record_id = :r",
                     ExpressionAttributeValues={":r": key["PK"]})
    return " ".join(sorted(page["Items"][0]))


@probe("Reads", "ConsistentRead on an index", "refused", GUIDE + "GSI.html", "ValidationException")
def consistent_index(b):
    return code_of(lambda: b.query("a", IndexName="ClaimIndex", ConsistentRead=True))


@probe("Reads", "filter on the query's own key; on the table's key in an index with another",
       "only what is no key there", QUERY, ["ValidationException", "ok"])
def filter_on_keys(b):
    own = code_of(lambda: b.query("a", FilterExpression="SK = :s", values={":s": S("a")}))
    other = code_of(lambda: b.c.query(TableName=b.TABLE, IndexName="ExpiryIndex", FilterExpression="PK = :p",
                                      KeyConditionExpression="has_expiry = :one AND expires_at < :t",
                                      ExpressionAttributeValues={":one": S("1"), ":t": N(1), ":p": S("a")}))
    return [own, other]


@probe("Reads", "Select COUNT: Count, Items", "no items", API + "Query.html", [3, "none"])
def count_only(b):
    page = b.query(b.fill(3), Select="COUNT")
    return [page["Count"], "Items" if page.get("Items") else "none"]


@probe("Reads", "Limit 0", "at least 1", API + "Query.html", "ValidationException")
def limit_zero(b):
    body = {"TableName": b.TABLE, "KeyConditionExpression": "PK = :p",
            "ExpressionAttributeValues": {":p": S("a")}, "Limit": 0}
    status, _, answer = post(b, "Query", body)  # botocore refuses it by itself
    return json.loads(answer).get("__type", "").rpartition("#")[2] if status != 200 else "ok"


@probe("Reads", "Query of five items of 300 KB: items, pages", "a page holds 1 MB", API + "Query.html",
       [5, "several"])
def page_bytes(b):
    partition = b.fill(5, x=S("x" * 300 * 1024))
    pages, more = [], {}
    for _ in range(6):
        page = b.query(partition, **more)
        pages.append(page["Count"])
        if "LastEvaluatedKey" not in page:
            break
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    return [sum(pages), "several" if len(pages) > 1 else "one"]


@probe("Reads", "Scan by pages of 2: each of five items", "once", API + "Scan.html", "abcde")
def scan_pages(b):
    name = b.name("probe-scan")
    b.create_plain(name)
    for key in "abcde":
        b.c.put_item(TableName=name, Item={"PK": S(key)})
    seen, more = "", {}
    for _ in range(10):
        page = b.c.scan(TableName=name, Limit=2, **more)
        seen += "".join(i["PK"]["S"] for i in page["Items"])
        if "LastEvaluatedKey" not in page:
            break
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    return "".join(sorted(seen))


@probe("Reads", "ProjectionExpression", "only what it names", API + "GetItem.html", "a")
def projection(b):
    key = b.key()
    b.put({**key, "a": N(1), "b": N(2)})
    return " ".join(sorted(b.c.get_item(TableName=b.TABLE, Key=key, ProjectionExpression="a")["Item"]))


def post(b, action, body, **headers):
    """(status, headers, body) of a request as bytes."""
    signed = {"X-Amz-Target": f"DynamoDB_20120810.{action}", "Content-Type": "application/x-amz-json-1.0",
              "X-Amz-Date": "20260101T000000Z",
              "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/eu-central-1/dynamodb/aws4_request, "
                               "SignedHeaders=host;x-amz-date, Signature=" + "0" * 64, **headers}
    signed = {k: v for k, v in signed.items() if v}
    request = urllib.request.Request(b.c.meta.endpoint_url, json.dumps(body).encode(), signed)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()


def checksum(headers, body):
    told = headers.get("x-amz-crc32")
    return "absent" if told is None else "right" if int(told) == zlib.crc32(body) else "wrong"


@probe("HTTP", "X-Amz-Crc32, x-amzn-RequestId, Content-Type", "in every answer",
       GUIDE + "Programming.LowLevelAPI.html", ["right", "there", "application/x-amz-json-1.0"])
def answer_headers(b):
    _, headers, body = post(b, "ListTables", {})
    request_id = "there" if headers.get("x-amzn-requestid") else "absent"
    return [checksum(headers, body), request_id, headers.get("Content-Type")]


@probe("HTTP", "__type of an error, and its X-Amz-Crc32", "name space, #, code", GUIDE + "Programming.Errors.html",
       [400, "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException", "right"])
def error_body(b):
    status, headers, body = post(b, "DescribeTable", {"TableName": "nobody"})
    return [status, json.loads(body).get("__type"), checksum(headers, body)]


@probe("HTTP", "without Authorization; an unknown operation", "refused",
       API.removesuffix("API_") + "CommonErrors.html",
       ["MissingAuthenticationTokenException", "UnknownOperationException"])
def refused_requests(b):
    out = []
    for action, headers in (("ListTables", {"Authorization": ""}), ("NoSuchThing", {})):
        status, _, body = post(b, action, {}, **headers)
        try:
            out.append(json.loads(body)["__type"].rpartition("#")[2] if status != 200 else "ok")
        except (ValueError, KeyError):
            out.append(f"status {status}")
    return out
