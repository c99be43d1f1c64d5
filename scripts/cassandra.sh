#!/usr/bin/env bash
# A real Cassandra node (loopback only) without Docker. Commands: scripts/engine.sh.
#
#   start options: [--secure] [--durable] [--brief] [--watch-pid PID] [--heap MB]
#
# --durable: what it acknowledged survives SIGKILL; each answer waits for the disk, which takes most of the rate.
# The line of JSON: {"name","pid","address","local_dc","ca","certificate","key","user","password_file",
# "dir"}. With --secure the address speaks TLS only and wants the user's password.
#
# Jars are fetched once per checkout with Maven into .dev/jars/cassandra; data is under .dev/run/NAME.
set -euo pipefail
ENGINE=cassandra MARK=cassandra.yaml READY_SECONDS=180 HEAP=768
USAGE='[--secure] [--durable] [--brief] [--watch-pid PID] [--heap MB]'
# shellcheck source=scripts/engine.sh
. "$(dirname "${BASH_SOURCE[0]}")/engine.sh"

VERSION=5.0.6
JARS="$ROOT/.dev/jars/cassandra/$VERSION"

# What Cassandra reaches into on Java 17, all for the unnamed module.
EXPORTS='java.base/jdk.internal.ref java.base/jdk.internal.math java.base/jdk.internal.module java.base/jdk.internal.util.jar
    java.base/jdk.internal.misc java.base/sun.nio.ch java.base/java.lang.ref java.management.rmi/com.sun.jmx.remote.internal.rmi
    java.rmi/sun.rmi.registry java.rmi/sun.rmi.server java.rmi/sun.rmi.transport java.rmi/sun.rmi.transport.tcp java.sql/java.sql
    jdk.unsupported/sun.misc java.management/com.sun.jmx.remote.security jdk.attach/sun.tools.attach
    jdk.compiler/com.sun.tools.javac.file'
OPENS='java.base/java.lang java.base/java.lang.module java.base/java.lang.reflect java.base/java.io java.base/java.net
    java.base/java.nio java.base/java.util java.base/java.util.concurrent java.base/java.util.concurrent.atomic
    java.base/java.util.concurrent.locks java.base/jdk.internal.loader java.base/jdk.internal.ref java.base/jdk.internal.reflect
    java.base/jdk.internal.math java.base/jdk.internal.module java.base/jdk.internal.util.jar java.base/sun.nio.ch
    java.base/jdk.internal.misc jdk.management/com.sun.management.internal jdk.management.jfr/jdk.management.jfr
    jdk.compiler/com.sun.tools.javac.code'

write_config() {
    # By default the commit log is synced once a second, as clusters do: replicas have what a node lost.
    local sync='commitlog_sync: periodic
commitlog_sync_period: 1000ms'
    [ -z "$DURABLE" ] || sync='commitlog_sync: batch'
    free_port; local native=$PORT
    free_port; local storage=$PORT
    cat >"$RUN/cassandra.yaml" <<YAML
cluster_name: dualtrack-$NAME
num_tokens: 16
partitioner: org.apache.cassandra.dht.Murmur3Partitioner
endpoint_snitch: SimpleSnitch
seed_provider:
  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
    parameters:
      - seeds: "127.0.0.1:$storage"
listen_address: 127.0.0.1
rpc_address: 127.0.0.1
storage_port: $storage
native_transport_port: $native
start_native_transport: true
$sync
data_file_directories: ["$RUN/data/data"]
commitlog_directory: $RUN/data/commitlog
hints_directory: $RUN/data/hints
saved_caches_directory: $RUN/data/saved_caches
cdc_raw_directory: $RUN/data/cdc_raw
memtable_allocation_type: heap_buffers
YAML
    if [ -n "$SECURE" ]; then
        "$ROOT/scripts/certificates.sh" "$RUN/tls"
        cat >>"$RUN/cassandra.yaml" <<YAML
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
client_encryption_options:
  enabled: true
  optional: false
  keystore: $RUN/tls/server.p12
  keystore_password: $(cat "$RUN/tls/password")
  store_type: PKCS12
YAML
        # The user a new node has by itself.
        printf 'cassandra' >"$RUN/tls/user"
        printf 'cassandra' >"$RUN/tls/cql-password"
        chmod 600 "$RUN/tls/cql-password"
    else
        echo 'authenticator: AllowAllAuthenticator' >>"$RUN/cassandra.yaml"
    fi
    mkdir -p "$RUN/conf"
    cat >"$RUN/conf/logback.xml" <<'LOGBACK'
<configuration><appender name="out" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%date %level %msg \(%logger{0}\)%n%ex</pattern></encoder></appender>
<logger name="org.apache.cassandra.transport" level="INFO"/>
<root level="WARN"><appender-ref ref="out"/></root></configuration>
LOGBACK
}

launch() {
    need java openjdk-17-jre-headless
    fetch_jars "$JARS" "org.apache.cassandra:cassandra-all:$VERSION"
    write_config
    choose_java 256
    free_port
    echo "$PORT" >"$RUN/jmx"
    again
}

again() {
    local each switches=()
    for each in $EXPORTS; do switches+=("--add-exports=$each=ALL-UNNAMED"); done
    for each in $OPENS; do switches+=("--add-opens=$each=ALL-UNNAMED"); done
    # shellcheck disable=SC2046
    java $(cat "$RUN/java") "${switches[@]}" -javaagent:"$(echo "$JARS"/jamm-*.jar)" \
        -Dcassandra.config="file://$RUN/cassandra.yaml" -Dcassandra.storagedir="$RUN/data" -Dcassandra-foreground=yes \
        -Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms=100 -Dcassandra.superuser_setup_delay_ms=0 \
        -Dcassandra.jmx.local.port="$(cat "$RUN/jmx")" -Djdk.attach.allowAttachSelf=true -Dlogback.configurationFile="file:$RUN/conf/logback.xml" \
        -cp "$RUN/conf:$JARS/*" org.apache.cassandra.service.CassandraDaemon >"$RUN/engine.log" 2>&1 </dev/null &
    PID=$!
}

ready() { grep -q "Starting listening for CQL clients" "$RUN/engine.log"; }

describe() {
    local tls=''
    [ ! -e "$RUN/tls" ] || tls="$RUN/tls"
    printf '{"name":"%s","pid":%s,"address":"127.0.0.1:%s","local_dc":"datacenter1","ca":"%s","certificate":"%s","key":"%s","user":"%s","password_file":"%s","dir":"%s"}\n' \
        "$NAME" "$(cat "$RUN/pid")" "$(sed -n 's/^native_transport_port: //p' "$RUN/cassandra.yaml")" "${tls:+$tls/ca.pem}" \
        "${tls:+$tls/client.pem}" "${tls:+$tls/client.key}" "${tls:+$(cat "$tls/user")}" "${tls:+$tls/cql-password}" "$RUN"
}

main "$@"
