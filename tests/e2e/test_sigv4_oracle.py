"""Our signer against botocore's on 1,000 generated requests (spec 04 A2, acceptance check 6).

GB_SIGV4 names the program (default build/bin/sigv4); GB_SEED repeats a run.
"""
import datetime
import json
import os
import pathlib
import random
import subprocess

import pytest

pytest.importorskip("botocore")
import botocore.auth
import botocore.awsrequest
import botocore.credentials

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("GB_SIGV4", ROOT / "build/bin/sigv4"))
COUNT = 1000

SEGMENTS = ["", ".", "..", "a", "B c", "%20", "%E1%88%B4", "ü", "~x_y-z.", "a+b", "a=b", "a:b", "@", "%2F", "a;b", "日本"]
QUERIES = ["a=1", "a", "=", "a=", "b=2", "B=2", "a=%20", "a=b=c", "z=%E1", "x-y=~", "a=+", "a=0", "aa=1", "a-=1"]
VALUES = ["v", "  two   words ", "", "tab\there", "a,b", "\"q   r\"", "ünïcode", "trailing  ", "1"]
NAMES = ["X-Custom", "x-custom", "Zeta", "alpha", "Content-Type", "X-Amz-Target", "A-b", "A-B2", "X-Amz-Security-Token"]


class FrozenTime(datetime.datetime):
    now_ = None

    @classmethod
    def utcnow(cls):
        return cls.now_

    @classmethod
    def now(cls, tz=None):
        return cls.now_.replace(tzinfo=tz)


def make_request(rng):
    path = "/" + "/".join(rng.choice(SEGMENTS) for _ in range(rng.randrange(5)))
    query = "&".join(rng.choice(QUERIES) for _ in range(rng.randrange(5)))
    port = rng.choice(["", ":4566", ":8443"])
    headers = [("Host", "svc.example.com" + port)]
    headers += [(rng.choice(NAMES), rng.choice(VALUES)) for _ in range(rng.randrange(7))]
    return {
        "method": rng.choice(["GET", "POST", "PUT"]),
        "path": path.replace("?", "").replace("#", ""),
        "query": query,
        "host": "svc.example.com" + port,
        "headers": headers,
        "body": rng.randbytes(rng.choice([0, 1, 63, 64, 65, 4096])),
        "seconds": rng.randrange(946684800, 4102444800),
        "region": rng.choice(["eu-west-1", "us-east-1", "cn-north-1"]),
        "service": rng.choice(["sqs", "dynamodb", "ssm", "sts"]),
        "id": rng.choice(["AKIDEXAMPLE", "ASIAOTHER"]),
        "secret": rng.choice(["wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "s", "x" * 100]),
    }


def botocore_authorization(q, monkeypatch):
    now = datetime.datetime.fromtimestamp(q["seconds"], datetime.timezone.utc).replace(tzinfo=None)
    FrozenTime.now_ = FrozenTime(now.year, now.month, now.day, now.hour, now.minute, now.second)
    monkeypatch.setattr(botocore.auth.datetime, "datetime", FrozenTime, raising=False)
    if hasattr(botocore.auth, "get_current_datetime"):
        monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda remove_tzinfo=True: FrozenTime.now_)
    url = f"https://{q['host']}{q['path']}" + (f"?{q['query']}" if q["query"] else "")
    request = botocore.awsrequest.AWSRequest(method=q["method"], url=url, data=q["body"])
    for name, value in q["headers"]:
        request.headers.add_header(name, value)
    # Without a session token here: botocore would add the header itself; our caller adds it like any other.
    credentials = botocore.credentials.Credentials(q["id"], q["secret"])
    signer = botocore.auth.SigV4Auth(credentials, q["service"], q["region"])
    signer.add_auth(request)
    return request.headers["Authorization"], request.headers["X-Amz-Date"]


def test_thousand_requests_agree_with_botocore(monkeypatch):
    assert PROGRAM.exists(), f"{PROGRAM} is not built: make check builds it before this step"
    seed = int(os.environ.get("GB_SEED", random.SystemRandom().randrange(2**32)))
    print(f"GB_SEED={seed}")
    rng = random.Random(seed)
    requests = [make_request(rng) for _ in range(COUNT)]
    wanted, lines = [], []
    for q in requests:
        authorization, date = botocore_authorization(q, monkeypatch)
        wanted.append(authorization)
        texts = [q["method"], q["path"], q["query"], q["body"].hex(), str(q["seconds"] * 1000), q["region"],
                 q["service"], q["id"], q["secret"]]
        for name, value in q["headers"] + [("X-Amz-Date", date)]:
            texts += [name, value]
        lines.append(json.dumps(texts, ensure_ascii=False))
    done = subprocess.run([PROGRAM], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True,
                          timeout=60)
    got = done.stdout.splitlines()
    assert len(got) == COUNT
    for q, ours, theirs in zip(requests, got, wanted):
        assert ours == theirs, f"GB_SEED={seed}: {q}"
