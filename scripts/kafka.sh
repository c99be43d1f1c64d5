#!/usr/bin/env bash
# A real Kafka broker (KRaft, one node, loopback only) without Docker.
#
#   scripts/kafka.sh start  --name NAME [--proxy-port PORT] [--watch-pid PID] [--heap MB]
#   scripts/kafka.sh status --name NAME
#   scripts/kafka.sh stop   --name NAME
#
# start prints one line of JSON: {"name","pid","bootstrap","proxy_listener","dir"} once the broker
# takes requests. `proxy_listener` is a second listener that advertises 127.0.0.1:PORT, the port of
# a fault proxy that forwards to it (clients reconnect to what a broker advertises, so a proxy
# needs a listener of its own). With --watch-pid the broker ends by itself when that process does.
# stop ends exactly the broker that start began, and removes its data.
#
# Jars are fetched once per checkout with Maven into .dev/jars/kafka; data is under .dev/run/NAME.
# Java and Maven are installed by apt-get when they are missing and this runs as root.
set -euo pipefail

VERSION=4.1.1
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
JARS="$ROOT/.dev/jars/kafka/$VERSION"
READY_SECONDS=90

fail() { echo "kafka.sh: $*" >&2; exit 1; }

need() { # command, Debian package
    command -v "$1" >/dev/null && return
    [ "$(id -u)" = 0 ] || fail "'$1' is missing: install the package $2 (apt-get install $2)"
    echo "kafka.sh: '$1' is missing, installing $2" >&2
    { apt-get update -q && apt-get install -qy --no-install-recommends "$2"; } >&2 || fail "'$1' is missing and apt-get install $2 failed"
    command -v "$1" >/dev/null || fail "'$1' is still missing after apt-get install $2"
}

fetch_jars() {
    [ -e "$JARS/.complete" ] && return
    need mvn maven
    mkdir -p "$JARS"
    (
        flock 9 # several test runs may start at once
        [ -e "$JARS/.complete" ] && exit 0
        local pom="$JARS/pom.xml"
        cat >"$pom" <<POM
<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>kafka-jars</artifactId><version>1</version>
<dependencies><dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$VERSION</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.24.3</version></dependency></dependencies></project>
POM
        mvn -q -B -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$JARS" >&2 \
            || fail "fetching Kafka $VERSION from Maven failed"
        touch "$JARS/.complete"
    ) 9>"$JARS/.lock"
}

# Below the ephemeral range, so that no outgoing connection of a test sits on it.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 10000))
        case " ${TAKEN:-} " in *" $port "*) continue ;; esac
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
        TAKEN="${TAKEN:-} $port"
        PORT=$port
        return
    done
}

# Is the recorded process still the broker we started? Pids are used again.
alive() { [ -e "$RUN/pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$(cat "$RUN/pid")/cmdline" | grep -qF "$RUN/server.properties"; } 2>/dev/null

write_config() {
    free_port; BROKER=$PORT; free_port; CONTROLLER=$PORT; free_port; PROXY_LISTEN=$PORT
    cat >"$RUN/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$CONTROLLER
listeners=PLAINTEXT://127.0.0.1:$BROKER,CONTROLLER://127.0.0.1:$CONTROLLER,PROXY://127.0.0.1:$PROXY_LISTEN
advertised.listeners=PLAINTEXT://127.0.0.1:$BROKER,PROXY://127.0.0.1:${PROXY_PORT:-$PROXY_LISTEN}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXY:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=$RUN/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
log.retention.check.interval.ms=1000
PROPERTIES
    cat >"$RUN/log4j2.xml" <<'LOG4J'
<Configuration status="WARN"><Appenders><Console name="out"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root><Logger name="kafka.server" level="INFO"/></Loggers></Configuration>
LOG4J
}


start() {
    need java openjdk-17-jre-headless
    fetch_jars
    if alive; then fail "'$NAME' runs already (pid $(cat "$RUN/pid"))"; fi
    rm -rf "$RUN"
    mkdir -p "$RUN"
    write_config
    local id
    id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')
    java -Dlog4j2.configurationFile="file:$RUN/log4j2.xml" -cp "$JARS/*" kafka.tools.StorageTool format -t "$id" -c "$RUN/server.properties" >"$RUN/format.log" 2>&1 \
        || { cat "$RUN/format.log" >&2; fail "formatting the log directory failed"; }
    java -Dlog4j2.configurationFile="file:$RUN/log4j2.xml" -Xms128m -Xmx"${HEAP}m" -cp "$JARS/*" kafka.Kafka "$RUN/server.properties" >"$RUN/broker.log" 2>&1 </dev/null &
    local pid=$!
    echo "$pid" >"$RUN/pid"
    disown "$pid"
    local deadline=$((SECONDS + READY_SECONDS))
    until grep -q "Kafka Server started" "$RUN/broker.log"; do
        if ! alive; then tail -n 30 "$RUN/broker.log" >&2; fail "the broker ended while starting"; fi
        if [ $SECONDS -ge $deadline ]; then tail -n 30 "$RUN/broker.log" >&2; stop; fail "the broker was not ready within $READY_SECONDS s"; fi
        sleep 0.1
    done
    if [ -n "$WATCH_PID" ]; then
        setsid bash "${BASH_SOURCE[0]}" watch --name "$NAME" --watch-pid "$WATCH_PID" >/dev/null 2>&1 </dev/null &
        disown $!
    fi
    describe
}

describe() {
    local bootstrap proxy
    bootstrap=$(sed -n 's#^listeners=PLAINTEXT://\([^,]*\),.*#\1#p' "$RUN/server.properties")
    proxy=$(sed -n 's#^listeners=.*PROXY://##p' "$RUN/server.properties")
    printf '{"name":"%s","pid":%s,"bootstrap":"%s","proxy_listener":"%s","dir":"%s"}\n' \
        "$NAME" "$(cat "$RUN/pid")" "$bootstrap" "$proxy" "$RUN"
}

stop() {
    if alive; then
        local pid
        pid=$(cat "$RUN/pid")
        kill -CONT "$pid" 2>/dev/null || true # a test may have stopped it
        kill -TERM "$pid" 2>/dev/null || true
        local deadline=$((SECONDS + 10))
        while alive && [ $SECONDS -lt $deadline ]; do sleep 0.1; done
        if alive; then kill -KILL "$pid" 2>/dev/null || true; fi
        while alive; do sleep 0.1; done
    fi
    rm -rf "$RUN"
}

# Ends the broker when the process it was started for is gone.
watch() {
    while kill -0 "$WATCH_PID" 2>/dev/null && alive; do sleep 0.5; done
    # Nobody reads this broker's data any more, so it needs no orderly end.
    if alive; then kill -KILL "$(cat "$RUN/pid")" 2>/dev/null || true; fi
    stop
}

COMMAND=${1:-}
[ $# -gt 0 ] && shift
NAME=kafka PROXY_PORT='' WATCH_PID='' HEAP=512
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "$1 needs a value"
    case $1 in
        --name) NAME=$2 ;;
        --proxy-port) PROXY_PORT=$2 ;;
        --watch-pid) WATCH_PID=$2 ;;
        --heap) HEAP=$2 ;;
        *) fail "unknown option $1" ;;
    esac
    shift 2
done
case $NAME in *[!a-zA-Z0-9._-]* | '' | .*) fail "--name may hold letters, digits, '.', '_' and '-' only" ;; esac
RUN="$ROOT/.dev/run/$NAME"
case $COMMAND in
    start) start ;;
    stop) stop ;;
    watch) watch ;;
    status) if alive; then describe; else echo "{\"name\":\"$NAME\",\"pid\":null}"; exit 3; fi ;;
    *) fail "usage: kafka.sh start|stop|status --name NAME [--proxy-port PORT] [--watch-pid PID] [--heap MB]" ;;
esac
