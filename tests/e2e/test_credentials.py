"""credentials_uri: file:// and pms:// (spec 04 D, 03 check 26)."""

import json
import os
import subprocess

import boto3
import pytest

import rig
import tls

SECRET = "s3cret-of-the-plant"


@pytest.fixture
def guarded(folder, parts):
    """A broker that wants a password, in plain text."""
    passwords = folder / "passwords"
    subprocess.run(["mosquitto_passwd", "-c", "-b", str(passwords), "plant", SECRET], check=True, capture_output=True)
    os.chmod(passwords, 0o644)
    made = rig.Broker(folder / "guarded", extra=f"password_file {passwords}", listener="")
    conf = (folder / "guarded" / "mosquitto.conf")
    conf.write_text(conf.read_text().replace("allow_anonymous true", "allow_anonymous false"))
    made.stop()
    made.process = rig.Process("mosquitto", ["/usr/sbin/mosquitto", "-c", str(conf)], folder / "guarded" / "m.log")
    rig.wait_until(lambda: rig.is_listening(made.port), 10, "mosquitto listens")
    parts.append(made)
    return made


def password_file(folder, username="plant", password=SECRET, mode=0o600):
    base = folder / "credentials" / "plant"
    base.mkdir(parents=True, exist_ok=True)
    path = base / "broker.json"
    path.write_text(json.dumps({"credentials": {"Password": {"Username": username, "Password": password},
                                                "TLS": None}, "version": 1}))
    path.chmod(mode)
    return path


def make(folder, broker, fake, parts, uri="file://plant/broker", plain=True, env=None, **session):
    doc = rig.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    options = doc["sessions"][0]["options"]
    options["credentials_uri"] = uri
    options["session"].update({"allow_plaintext_credentials": plain, **session})
    bridge = rig.Bridge(folder, doc, args=["-credentials-dir", str(folder / "credentials")], env=env)
    parts.append(bridge)
    bridge.seed()
    return bridge


def run(bridge):
    return bridge.run(*bridge.args)


def test_password_from_a_file(folder, guarded, fake, parts):
    password_file(folder)
    bridge = make(folder, guarded, fake, parts)
    bridge.start()
    assert SECRET not in bridge.text()
    assert "open to others" not in bridge.text()
    assert bridge.terminate() == 0


def test_file_that_others_can_read(folder, guarded, fake, parts):
    password_file(folder, mode=0o644)
    bridge = make(folder, guarded, fake, parts)
    bridge.start()
    assert bridge.count("open to others") == 1
    assert bridge.terminate() == 0


def test_inline_values_win(folder, guarded, fake, parts):
    password_file(folder, username="nobody")
    bridge = make(folder, guarded, fake, parts, username="plant")
    bridge.start()
    assert bridge.terminate() == 0


def test_plain_text_is_refused_after_resolution(folder, guarded, fake, parts):
    """03 check 26: the document alone holds no user name; what its URI leads to does."""
    password_file(folder)
    bridge = make(folder, guarded, fake, parts, plain=False)
    assert bridge.run("-validate").returncode == 0
    result = run(bridge)
    assert result.returncode == 1
    assert "would be sent in plain text" in result.stderr and "[M3]" in result.stderr
    assert SECRET not in result.stderr
    assert guarded.count("New client connected") == 0


@pytest.mark.parametrize("trusted", [True, False])
def test_wrong_ca_never_sees_the_password(trusted, folder, fake, parts):
    """03 check 26, second half: the authority is the URI's, too. The broker's log tells who presented a name."""
    own, other = tls.Authority(folder, "own"), tls.Authority(folder, "other")
    cert, key = own.issue("broker", host="127.0.0.1")
    broker = rig.Broker(folder / "tls", verbose=True, listener=f"certfile {cert}\nkeyfile {key}")
    parts.append(broker)
    path = password_file(folder)
    ca = (own if trusted else other).path.read_text()
    path.write_text(json.dumps({"credentials": {"Password": {"Username": "plant", "Password": SECRET},
                                                "TLS": {"CAPEMs": [ca]}}}))
    bridge = make(folder, broker, fake, parts, plain=False, broker_url=f"tls://127.0.0.1:{broker.port}")
    bridge.start(wait="mqtt subscriptions converged" if trusted else "mqtt connect failed")
    assert (broker.count("u'plant'") > 0) == trusted
    assert bridge.terminate() == 0


BROKEN = {
    "missing": (None, "no such file below -credentials-dir", "NOT_FOUND"),
    "garbage": ("{", "no well-formed JSON", "INVALID_PAYLOAD"),
    "no credentials": ('{"credentials": null}', "neither a username nor a certificate", "INVALID_PAYLOAD"),
    "half a pair": ('{"credentials": {"TLS": {"CertPEM": "x"}}}', "come together", "INVALID_PAYLOAD"),
    "bad PEM": ('{"credentials": {"TLS": {"CertPEM": "x", "KeyPEM": "y"}}}', "", "INVALID_CONFIG"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_credentials_end_the_start(case, folder, broker, fake, parts):
    """Never anonymous: the broker would have taken it."""
    text, says, code = BROKEN[case]
    path = password_file(folder)
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    bridge = make(folder, broker, fake, parts)
    if case == "bad PEM":
        rig.set_path(bridge.doc, "sessions.0.options.session.broker_url", f"tls://127.0.0.1:{broker.port}")
        bridge.write(bridge.doc)
    seen = broker.count("New client connected")
    result = run(bridge)
    assert result.returncode == 1
    assert says in result.stderr and code in result.stderr
    assert "session plant" in result.stderr
    assert "plant/broker" not in result.stderr
    assert broker.count("New client connected") == seen


def test_credentials_dir_that_is_none(folder, broker, fake, parts):
    bridge = make(folder, broker, fake, parts)
    result = run(bridge)
    assert result.returncode == 1
    assert "-credentials-dir is no directory" in result.stderr


@pytest.fixture
def parameters(moto):
    client = boto3.client("ssm", endpoint_url=moto.endpoint, region_name="eu-central-1", aws_access_key_id="local",
                          aws_secret_access_key="local")

    def put(name, value):
        client.put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)
        return {"AWS_ENDPOINT_URL_SSM": moto.endpoint}
    return put


@pytest.mark.parametrize("value", [f"plant:{SECRET}", json.dumps({"user": "plant", "password": SECRET})])
def test_password_from_a_parameter(value, folder, guarded, fake, parts, parameters):
    env = parameters("/app/broker", value)
    bridge = make(folder, guarded, fake, parts, uri="pms://app/broker", env=env)
    bridge.start()
    assert SECRET not in bridge.text()
    assert bridge.terminate() == 0


def test_missing_parameter(folder, broker, fake, parts, parameters):
    env = parameters("/app/other", "a:b")
    bridge = make(folder, broker, fake, parts, uri="pms://app/broker-that-is-not", env=env)
    result = run(bridge)
    assert result.returncode == 1
    assert "SSM has no such parameter" in result.stderr and "broker-that-is-not" not in result.stderr


def test_keys_of_a_queue(folder, broker, publisher, fake, parts):
    """SQS takes the pair as access key; a temporary one is refused (04 D1)."""
    password_file(folder, username="AKIAEXAMPLE", password="secretkey")
    doc = rig.document(folder, broker.port, fake.queue_url(), fake.endpoint)
    doc["senders"][0]["options"]["credentials_uri"] = "file://plant/broker"
    env = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"}
    bridge = rig.Bridge(folder, doc, args=["-credentials-dir", str(folder / "credentials")], env=env)
    parts.append(bridge)
    bridge.seed()
    bridge.start()
    publisher.publish("telemetry/x", b"one", message_id="one")
    fake.wait_for_payloads([b"one"], 20)
    assert bridge.terminate() == 0
    password_file(folder, username="ASIAEXAMPLE", password="secretkey")
    result = run(bridge)
    assert result.returncode == 1 and "NOT_AUTHORIZED" in result.stderr and "ASIA" in result.stderr
