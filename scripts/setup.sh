#!/usr/bin/env bash
# What the build and the tests need. As root it installs what is missing from Debian's packages;
# otherwise it says what to install. Does nothing, quickly, when all is there.
set -euo pipefail
# shellcheck source=scripts/packages.sh
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

missing=()
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need cmake cmake
need g++ g++
need make make
need pkg-config pkg-config
need python3 python3
need java openjdk-17-jre-headless
need mvn maven
need curl curl
need openssl openssl
need promtool prometheus
pkg-config --exists openssl 2>/dev/null || missing+=(libssl-dev)
python3 -c "import ensurepip" 2>/dev/null || missing+=(python3-venv)

if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing: ${missing[*]} (Debian package names); install them and try again" >&2
        exit 1
    fi
    echo "installing: ${missing[*]}" >&2
    install_packages "${missing[@]}" >&2
fi

if ! command -v cargo >/dev/null; then
    echo "missing: Rust 1.95 or newer (https://rustup.rs)" >&2
    exit 1
fi
