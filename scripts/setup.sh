#!/usr/bin/env bash
# Installs what is missing on Debian 12 for: build (default), demo, check or bench. Fast when nothing is.
set -euo pipefail
cd "$(dirname "$0")/.."

packages_build=(gcc libc6-dev make cmake ninja-build pkg-config libuv1-dev libssl-dev
    libcurl4-openssl-dev libmicrohttpd-dev libsqlite3-dev libyaml-dev libpcre2-dev)
packages_demo=(mosquitto mosquitto-clients python3 python3-venv ca-certificates curl openssl)
packages_check=(clang-14 spin libclang-rt-14-dev llvm-14 clang-format-14 clang-tidy-14 libcmocka-dev
    binutils git iproute2)

purpose=${1:-build}
case $purpose in
    build) packages=("${packages_build[@]}") ;;
    demo | bench) packages=("${packages_build[@]}" "${packages_demo[@]}") ;;
    check) packages=("${packages_build[@]}" "${packages_demo[@]}" "${packages_check[@]}") ;;
    *)
        echo "usage: scripts/setup.sh [build|demo|check|bench]" >&2
        exit 2
        ;;
esac

die() {
    echo "setup: $*" >&2
    exit 1
}

missing_packages() {
    local installed
    installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "${packages[@]}" 2>/dev/null || true)"
    local package
    for package in "${packages[@]}"; do
        [[ $installed == *" installed:$package "* ]] || echo "$package"
    done
}

install_packages() {
    local as_root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "run as root or install sudo; missing packages: $*"
        as_root=(sudo)
    fi
    as_root+=(env DEBIAN_FRONTEND=noninteractive)
    echo "setup: installing $*"
    "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update ||
        echo "setup: apt-get update failed; trying with the package lists that are here" >&2
    "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" ||
        die "could not install: $*
setup: see apt's message above. Offline? Connect to a Debian 12 mirror once, then run this again."
}

# .venv holds exactly tests/requirements.txt; the stamp is written last, so a broken one is made anew.
make_venv() {
    local stamp=.venv/requirements.sha256 wanted
    wanted=$(sha256sum tests/requirements.txt)
    [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && return
    echo "setup: making .venv with the packages of tests/requirements.txt"
    rm -rf .venv
    /usr/bin/python3 -m venv .venv || die "python3 -m venv failed; is python3-venv installed?"
    .venv/bin/pip install --quiet --disable-pip-version-check --no-input --require-hashes \
        -r tests/requirements.txt ||
        die "pip could not install tests/requirements.txt. Offline? Connect to PyPI once, then run this again."
    printf '%s\n' "$wanted" >"$stamp"
}

command -v dpkg-query >/dev/null || die "this script installs Debian packages; elsewhere install by hand: ${packages[*]}"
mapfile -t missing < <(missing_packages)
[[ ${#missing[@]} == 0 ]] || install_packages "${missing[@]}"
[[ $purpose == build ]] || make_venv
case $purpose in check | bench) scripts/emulators.sh ;; esac
