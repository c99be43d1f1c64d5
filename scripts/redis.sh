#!/usr/bin/env bash
# A real Redis server (loopback only, nothing written to disk). Commands: scripts/engine.sh.
#
#   start options: [--secure] [--watch-pid PID]
#
# The line of JSON: {"name","pid","url","secure_url","ca","certificate","key","user","password_file",
# "dir"}. With --secure both ports want the user's password, and `secure_url` is TLS that wants the
# client's certificate besides.
#
# The Debian package is installed by apt-get when it is missing and this runs as root.
set -euo pipefail
ENGINE=redis MARK=redis.conf READY_SECONDS=30
USAGE='[--secure] [--watch-pid PID]'
# shellcheck source=scripts/engine.sh
. "$(dirname "${BASH_SOURCE[0]}")/engine.sh"

launch() {
    need redis-server redis-server
    free_port
    cat >"$RUN/redis.conf" <<CONF
bind 127.0.0.1
port $PORT
dir $RUN
save ""
appendonly no
maxmemory-policy noeviction
CONF
    if [ -n "$SECURE" ]; then
        "$ROOT/scripts/certificates.sh" "$RUN/tls"
        free_port
        cat >>"$RUN/redis.conf" <<CONF
tls-port $PORT
tls-cert-file $RUN/tls/server.pem
tls-key-file $RUN/tls/server.key
tls-ca-cert-file $RUN/tls/ca.pem
tls-auth-clients yes
user default off
user $(cat "$RUN/tls/user") on >$(cat "$RUN/tls/password") ~* &* +@all
CONF
    fi
    again
}

# The server rewrites its process title to what says nothing of its configuration, unless told otherwise.
again() {
    redis-server "$RUN/redis.conf" --set-proc-title no >"$RUN/engine.log" 2>&1 </dev/null &
    PID=$!
}

ready() { grep -q "Ready to accept connections" "$RUN/engine.log"; }

describe() {
    setting() { sed -n "s/^$1 //p" "$RUN/redis.conf"; }
    local tls='' secure=''
    if [ -e "$RUN/tls" ]; then
        tls="$RUN/tls"
        secure="rediss://127.0.0.1:$(setting tls-port)"
    fi
    printf '{"name":"%s","pid":%s,"url":"redis://127.0.0.1:%s","secure_url":"%s","ca":"%s","certificate":"%s","key":"%s","user":"%s","password_file":"%s","dir":"%s"}\n' \
        "$NAME" "$(cat "$RUN/pid")" "$(setting port)" "$secure" "${tls:+$tls/ca.pem}" "${tls:+$tls/client.pem}" \
        "${tls:+$tls/client.key}" "${tls:+$(cat "$tls/user")}" "${tls:+$tls/password}" "$RUN"
}

main "$@"
