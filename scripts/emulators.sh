#!/usr/bin/env bash
# Builds dynoxide, the DynamoDB emulator the tests prefer, once: two minutes and some 150 MB from crates.io, which stay in
# .tools (GB_TOOLS names another folder, which clones may share). Nothing but the tests and the benchmark use it; where it
# can't be built, this says why and succeeds: moto's server stands in.
set -euo pipefail
cd "$(dirname "$0")/.."

version=3.2.0
rust_needed=1.88
tools=${GB_TOOLS:-$PWD/.tools}
home=$tools/dynoxide-$version

notice() {
    echo "NOTICE: no dynoxide: $*; tests use moto's server as DynamoDB and skip what needs dynoxide" >&2
    exit 0
}

# cargo may be rustup's proxy without a toolchain behind it, so that only its answer counts.
rust_version() {
    { cargo --version && rustc --version; } 2>/dev/null | awk '{ print $2 }' | sort -V | head -n 1
}

build() {
    local part=$home.part
    rm -rf "$part"
    echo "emulators: building dynoxide $version with cargo, about two minutes, once"
    # Set aside by name: an interrupted build must not look like a finished one.
    CARGO_TARGET_DIR=$part/target cargo install --quiet --locked --no-default-features \
        --features native-sqlite,http-server,cli dynoxide-rs --version "=$version" --root "$part" ||
        notice "cargo could not build dynoxide-rs $version (offline? connect to crates.io once)"
    rm -rf "$part/target"
    mv "$part" "$home"
}

[[ -x $home/bin/dynoxide ]] && exit 0
command -v cargo >/dev/null || notice "cargo is not installed (Rust $rust_needed or newer)"
found=$(rust_version)
[[ -n $found && $(printf '%s\n' "$rust_needed" "$found" | sort -V | head -n 1) == "$rust_needed" ]] ||
    notice "Rust ${found:-without a toolchain} is older than $rust_needed"
mkdir -p "$tools"
exec 9>"$tools/lock"
flock 9 # two clones that share the folder
[[ -x $home/bin/dynoxide ]] || build
