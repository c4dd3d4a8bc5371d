# Thin on purpose: each target calls a script or CMake, which can be called without make as well.
.PHONY: build demo demo-cluster check bench failover soak fuzz mutate docs format lint model sim-cluster clean

build:
	scripts/setup.sh build
	cmake --preset release --log-level=WARNING
	cmake --build build --target gobridge

demo: build
	scripts/setup.sh demo
	scripts/demo.sh

demo-cluster: build
	scripts/setup.sh demo
	scripts/demo_cluster.sh

check:
	scripts/check.sh

bench: build
	scripts/setup.sh bench
	scripts/bench.sh

soak:
	scripts/setup.sh check
	scripts/soak.sh

# One target for ten minutes: make fuzz FUZZ_SECONDS=600 FUZZ_TARGETS=json
fuzz:
	scripts/setup.sh check
	scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# Ten minutes or more. Some files only: make mutate MUTATE_FILES=src/blueprint/validate_mqtt.c
mutate:
	scripts/setup.sh check
	scripts/mutate.py $(MUTATE_FILES)

# docs/configuration.md and docs/gobridge.schema.json
docs:
	scripts/setup.sh check
	cmake --preset release --log-level=WARNING
	cmake --build build --target docs

format:
	scripts/setup.sh check
	scripts/format.sh

lint:
	scripts/setup.sh check
	scripts/lint.py

# 100,000 simulated failovers, a few minutes of one core
sim-cluster:
	scripts/setup.sh build
	scripts/sim_cluster.sh

# Owners that die, hang, are cut off or stop, with real processes; a few minutes. FAILOVER="--rounds 100" for more
failover: build
	scripts/setup.sh bench
	.venv/bin/python scripts/failover.py $(FAILOVER)

# Searches the lease protocol's model and its weakened variants, a few minutes; see tests/model/README.md
model:
	scripts/setup.sh check
	tests/model/check.py

clean:
	rm -rf build
