"""The bridge under valgrind's memcheck with a short load; part of `make soak` (run by its path, not collected)."""

import shutil

import pytest

import rig
from fake_sqs import Fault

VALGRIND = ["valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite,possible",
            "--errors-for-leak-kinds=definite,possible", "--num-callers=30"]
DIRECT = {"routes.0.delivery_mode": "direct_hold", "routes.0.session": None}
SLOW = {"bridge.shutdown_timeout": "60s", "sessions.0.options.session.keep_alive": 30}


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize("mode", ["shared_outbox", "direct_hold"])
def test_no_error_and_no_leak(new_bridge, broker, publisher, fake, mode):
    bridge = new_bridge({**SLOW, **(DIRECT if mode == "direct_hold" else {})}, start=False, wrapper=VALGRIND)
    bridge.start(seconds=120)
    faults = [Fault(status=500, code="InternalError"), Fault(cut="before"), Fault(cut="half")]
    fake.rule = lambda r: faults.pop() if faults else None
    fake.entry_rule = lambda m: ("InvalidParameterValue", True) if m.payload.startswith(b"refuse") else None
    wanted = [b"%d" % i if i % 5 else b"\x00%d" % i for i in range(200)]
    for i, payload in enumerate(wanted):
        publisher.publish(f"telemetry/{i}", payload, qos=i % 3, message_id=f"m{i}", properties=[("a", "b")] * (i % 20))
        if i % 50 == 0:
            publisher.publish("telemetry/x", b"refuse %d" % i)
    publisher.flush()
    fake.wait_for_payloads(wanted, 120)
    rig.wait_until(lambda: len(bridge.dlq()) == 4, 60, "the refused ones are dead letters")
    broker.stop()
    bridge.wait_log("mqtt connect failed", 60)
    broker.start()
    bridge.wait_log("mqtt subscriptions converged", 60, count=2)
    assert bridge.terminate(120) == 0, bridge.text()[-3000:]
    assert not [l for l in bridge.text().splitlines() if l.startswith("==")], "valgrind has nothing to say"
