#!/usr/bin/env bash
# A real Kafka broker (KRaft, one node, loopback only) without Docker. Commands: scripts/engine.sh.
#
#   start options: [--proxy-port PORT] [--secure] [--brief] [--watch-pid PID] [--heap MB]
#
# The line of JSON: {"name","pid","bootstrap","proxy_listener","secure_bootstrap","ca","user",
# "password_file","dir"}. `proxy_listener` is a second listener that advertises 127.0.0.1:PORT, the port
# of a fault proxy that forwards to it (clients reconnect to what a broker advertises, so a proxy needs a
# listener of its own). With --secure there is a third one, SASL_SSL with SCRAM-SHA-512.
#
# Jars are fetched once per checkout with Maven into .dev/jars/kafka; data is under .dev/run/NAME.
# Java and Maven are installed by apt-get when they are missing and this runs as root.
set -euo pipefail
ENGINE=kafka MARK=server.properties READY_SECONDS=90 HEAP=512
USAGE='[--proxy-port PORT] [--secure] [--brief] [--watch-pid PID] [--heap MB]'
# shellcheck source=scripts/engine.sh
. "$(dirname "${BASH_SOURCE[0]}")/engine.sh"

VERSION=4.1.1
JARS="$ROOT/.dev/jars/kafka/$VERSION"

write_config() {
    free_port; local broker=$PORT
    free_port; local controller=$PORT
    free_port; local proxy=$PORT
    local listeners="PLAINTEXT://127.0.0.1:$broker,CONTROLLER://127.0.0.1:$controller,PROXY://127.0.0.1:$proxy"
    local advertised="PLAINTEXT://127.0.0.1:$broker,PROXY://127.0.0.1:${PROXY_PORT:-$proxy}"
    if [ -n "$SECURE" ]; then
        free_port
        listeners="$listeners,SECURE://127.0.0.1:$PORT"
        advertised="$advertised,SECURE://127.0.0.1:$PORT"
    fi
    cat >"$RUN/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=$listeners
advertised.listeners=$advertised
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXY:PLAINTEXT,SECURE:SASL_SSL
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
    if [ -n "$SECURE" ]; then
        "$ROOT/scripts/certificates.sh" "$RUN/tls"
        cat "$RUN/tls/server.key" "$RUN/tls/server.pem" >"$RUN/tls/server-all.pem"
        cat >>"$RUN/server.properties" <<PROPERTIES
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=$RUN/tls/server-all.pem
listener.name.secure.ssl.truststore.type=PEM
listener.name.secure.ssl.truststore.location=$RUN/tls/ca.pem
PROPERTIES
    fi
    cat >"$RUN/log4j2.xml" <<'LOG4J'
<Configuration status="WARN"><Appenders><Console name="out"><PatternLayout pattern="%d %p %m (%c)%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root><Logger name="kafka.server" level="INFO"/></Loggers></Configuration>
LOG4J
}

launch() {
    need java openjdk-17-jre-headless
    fetch_jars "$JARS" "org.apache.kafka:kafka_2.13:$VERSION" org.apache.logging.log4j:log4j-slf4j-impl:2.24.3
    write_config
    local id scram=()
    id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=')
    [ -z "$SECURE" ] || scram=(--add-scram "SCRAM-SHA-512=[name=$(cat "$RUN/tls/user"),password=$(cat "$RUN/tls/password")]")
    java -Dlog4j2.configurationFile="file:$RUN/log4j2.xml" -cp "$JARS/*" kafka.tools.StorageTool format -t "$id" -c "$RUN/server.properties" "${scram[@]}" >"$RUN/format.log" 2>&1 \
        || { cat "$RUN/format.log" >&2; fail "formatting the log directory failed"; }
    choose_java 128
    again
}

again() {
    # shellcheck disable=SC2046
    java $(cat "$RUN/java") -Dlog4j2.configurationFile="file:$RUN/log4j2.xml" -cp "$JARS/*" kafka.Kafka "$RUN/server.properties" >"$RUN/engine.log" 2>&1 </dev/null &
    PID=$!
}

ready() { grep -q "Kafka Server started" "$RUN/engine.log"; }

describe() {
    listener() { sed -n "s#^listeners=.*$1://\([^,]*\).*#\1#p" "$RUN/server.properties"; }
    local secure='' tls=''
    secure=$(listener SECURE)
    [ -z "$secure" ] || tls="$RUN/tls"
    printf '{"name":"%s","pid":%s,"bootstrap":"%s","proxy_listener":"%s","secure_bootstrap":"%s","ca":"%s","user":"%s","password_file":"%s","dir":"%s"}\n' \
        "$NAME" "$(cat "$RUN/pid")" "$(listener PLAINTEXT)" "$(listener PROXY)" "$secure" \
        "${tls:+$tls/ca.pem}" "${tls:+$(cat "$tls/user")}" "${tls:+$tls/password}" "$RUN"
}

main "$@"
