"""The promise: whatever the broker has acknowledged to a publisher arrives, whenever the bridge is killed.

GB_KILLS sets the number of kills, GB_SEED repeats a run's moments.
"""

import os
import random
import threading
import time

KILLS = int(os.environ.get("GB_KILLS", "25"))
SEED = int(os.environ.get("GB_SEED", random.SystemRandom().randrange(1 << 32)))
RATE = 400  # messages a second
LIFE_MAX = 1.2  # seconds from the start of the process to the kill


class Load(threading.Thread):
    """Publishes steadily; every fifth message is binary."""

    def __init__(self, publisher):
        super().__init__(daemon=True)
        self.publisher = publisher
        self.sent = []
        self.running = True
        self.start()

    def run(self):
        start = time.monotonic()
        while self.running:
            i = len(self.sent)
            payload = b"message-%d" % i if i % 5 else b"\x00\xff\xfe%d" % i
            anonymous = i % 3 == 0
            self.publisher.publish(f"telemetry/{i % 16}", payload, message_id=None if anonymous else f"id-{i}")
            self.sent.append(payload)
            ahead = start + len(self.sent) / RATE - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)

    def stop(self):
        self.running = False
        self.join(10)


def kill_at_random_moments(bridge, moments):
    for i in range(KILLS):
        if i > 0:
            bridge.start(wait=None)
        time.sleep(moments.uniform(0.02, LIFE_MAX))
        assert bridge.alive(), bridge.text()[-2000:]
        bridge.kill()


def test_every_acknowledged_message_survives_kills(new_bridge, publisher, fake):
    """The sink is the strict fake: moto takes some 30 messages a second here, too few for load (the demo has moto)."""
    print(f"\nseed {SEED}, {KILLS} kills")
    bridge = new_bridge()  # before the subscription exists the broker acknowledges and forgets
    load = Load(publisher)
    try:
        kill_at_random_moments(bridge, random.Random(SEED))
        load.stop()
        publisher.flush()
        bridge.start()
        fake.wait_for_payloads(publisher.acknowledged, 60)
        assert bridge.terminate() == 0
    finally:
        load.stop()
        arrived, distinct = len(fake.payloads()), fake.distinct()
        print(f"acknowledged {len(publisher.acknowledged)}, missing {len(publisher.acknowledged - distinct)}, "
              f"duplicates {arrived - len(distinct)}, connections {bridge.count('mqtt connected')} in {KILLS + 1} lives")
    assert distinct == publisher.acknowledged == set(load.sent), "nothing missing, damaged or foreign"
    assert bridge.count("mqtt connected") > KILLS // 2, "the kills hit a bridge at work"
