#!/usr/bin/env bash
# Kafka, Cassandra and Redis on loopback, side by side, without Docker (`make stack`).
#
#   scripts/stack.sh start  [--name NAME] [--secure] [--durable] [--brief] [--watch-pid PID] [--proxy-port PORT]
#   scripts/stack.sh status [--name NAME]
#   scripts/stack.sh stop   [--name NAME]
#
# start prints one JSON object {"kafka":{…},"cassandra":{…},"redis":{…}} of what the engines' own scripts
# print, and writes .dev/run/NAME.env: the variables by which Dualtrack's programs find them. What runs
# already is left as it is. stop ends only what start began. --proxy-port goes to kafka.sh, --durable to
# cassandra.sh: they say why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "stack.sh: $*" >&2; exit 1; }

COMMAND=${1:-}
[ $# -gt 0 ] && shift
NAME=stack OPTIONS=() KAFKA_OPTIONS=() CASSANDRA_OPTIONS=()
while [ $# -gt 0 ]; do
    case $1 in
        --secure | --brief) OPTIONS+=("$1"); shift; continue ;;
        --durable) CASSANDRA_OPTIONS+=(--durable); shift; continue ;;
        --name | --watch-pid | --proxy-port) [ $# -ge 2 ] || fail "$1 needs a value" ;;
        *) fail "unknown option $1" ;;
    esac
    case $1 in
        --name) NAME=$2 ;;
        --proxy-port) KAFKA_OPTIONS+=("$1" "$2") ;;
        *) OPTIONS+=("$1" "$2") ;;
    esac
    shift 2
done
case $NAME in *[!a-zA-Z0-9._-]* | '' | .*) fail "--name may hold letters, digits, '.', '_' and '-' only" ;; esac

ENGINES='kafka cassandra redis'
OUT=".dev/run/$NAME.starting.$$"

start() {
    mkdir -p "$OUT"
    trap 'rm -rf "$OUT"' EXIT
    local engine bad='' more=()
    local -A job
    for engine in $ENGINES; do
        "scripts/$engine.sh" status --name "$NAME-$engine" >"$OUT/$engine" 2>/dev/null && continue
        more=()
        [ "$engine" != kafka ] || more=("${KAFKA_OPTIONS[@]}")
        [ "$engine" != cassandra ] || more=("${CASSANDRA_OPTIONS[@]}")
        "scripts/$engine.sh" start --name "$NAME-$engine" "${OPTIONS[@]}" "${more[@]}" >"$OUT/$engine" &
        job[$engine]=$!
    done
    for engine in "${!job[@]}"; do wait "${job[$engine]}" || bad="$bad $engine"; done
    [ -z "$bad" ] || { stop; fail "not started:$bad (what it said is above)"; }
    describe
}

describe() {
    python3 - "$OUT" ".dev/run/$NAME.env" <<'PYTHON'
import json, os, sys

engines = {name: json.load(open(os.path.join(sys.argv[1], name))) for name in ("kafka", "cassandra", "redis")}
kafka, cassandra, redis = (engines[name] for name in ("kafka", "cassandra", "redis"))
settings = {
    "DUALTRACK_LOG__BOOTSTRAP": kafka["secure_bootstrap"] or kafka["bootstrap"],
    "DUALTRACK_LOG__REPLICATION": "1",
    "DUALTRACK_LOG__MIN_INSYNC": "1",
    "DUALTRACK_STORE__REPLICATION": "1",
    "DUALTRACK_STORE__CONTACT_POINTS": cassandra["address"],
    "DUALTRACK_STORE__LOCAL_DC": cassandra["local_dc"],
    "DUALTRACK_LOCK__URL": redis["secure_url"] or redis["url"],
}
for section, engine in (("LOG", kafka), ("STORE", cassandra), ("LOCK", redis)):
    for key, name in (("ca", "CA_FILE"), ("user", "USER"), ("password_file", "PASSWORD_FILE")):
        if engine[key]:
            settings[f"DUALTRACK_{section}__{name}"] = engine[key]
if redis["certificate"]:
    settings["DUALTRACK_LOCK__CERTIFICATE_FILE"] = redis["certificate"]
    settings["DUALTRACK_LOCK__KEY_FILE"] = redis["key"]
with open(sys.argv[2], "w") as out:
    out.writelines(f"export {name}='{value}'\n" for name, value in settings.items())
print(json.dumps(engines))
PYTHON
}

status() {
    mkdir -p "$OUT"
    trap 'rm -rf "$OUT"' EXIT
    local engine down=''
    for engine in $ENGINES; do
        "scripts/$engine.sh" status --name "$NAME-$engine" >"$OUT/$engine" || down="$down $engine"
    done
    [ -z "$down" ] || { echo "stack.sh: not running:$down" >&2; exit 3; }
    describe
}

stop() {
    local engine
    for engine in $ENGINES; do "scripts/$engine.sh" stop --name "$NAME-$engine" & done
    wait
    rm -f ".dev/run/$NAME.env"
}

case $COMMAND in
    start | status | stop) $COMMAND ;;
    *) fail "usage: stack.sh start|status|stop [--name NAME] [--secure] [--durable] [--brief] [--watch-pid PID] [--proxy-port PORT]" ;;
esac
