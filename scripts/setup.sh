#!/usr/bin/env bash
# What the build and the tests need. As root it installs what is missing from Debian's packages;
# otherwise it says what to install. Does nothing, quickly, when all is there.
set -euo pipefail

missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need cmake cmake
need g++ g++
need make make
need python3 python3
need java openjdk-17-jre-headless
need mvn maven
need curl curl
python3 -c "import ensurepip" 2>/dev/null || missing+=(python3-venv)

if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing: ${missing[*]} (Debian package names); install them and try again" >&2
        exit 1
    fi
    echo "installing: ${missing[*]}" >&2
    apt-get update -q >&2
    apt-get install -qy --no-install-recommends "${missing[@]}" >&2
fi

if ! command -v cargo >/dev/null; then
    echo "missing: Rust 1.95 or newer (https://rustup.rs)" >&2
    exit 1
fi
