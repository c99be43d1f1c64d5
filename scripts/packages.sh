# shellcheck shell=bash
# Debian packages, for the scripts that source this; they run as root or say what is missing.

# Those of servers (redis-server, prometheus) start a system service of theirs; ours are the only ones wanted.
install_packages() { # package …
    local policy=/usr/sbin/policy-rc.d made='' status=0
    apt-get update -q || return
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy && made=1
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" || status=$?
    [ -z "$made" ] || rm -f $policy
    return $status
}
