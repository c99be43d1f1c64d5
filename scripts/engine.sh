# shellcheck shell=bash disable=SC2034
# What kafka.sh, cassandra.sh and redis.sh share; they source this file.
#
# An engine is a process of ours with a name, a directory .dev/run/NAME that holds all it writes, and
# free ports on loopback. The script that sources this sets ENGINE, MARK (a file below RUN that stands
# in the command line of the process: pids are used again), and defines launch() and describe().
#
#   start  --name NAME [options]   starts it, waits until it takes requests, prints one line of JSON
#   status --name NAME             prints that line again; exit code 3 when it does not run
#   stop   --name NAME             ends exactly what start began, and removes its data
#
# --watch-pid PID ends the engine by itself when that process is gone. --brief is for an engine that lives for
# minutes, not days: one in Java compiles its code quickly instead of well, which takes half of the CPU time of
# the first minute, and never gets as fast.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/packages.sh
. "$ROOT/scripts/packages.sh"

fail() { echo "$ENGINE.sh: $*" >&2; exit 1; }

need() { # command, Debian package
    command -v "$1" >/dev/null && return
    [ "$(id -u)" = 0 ] || fail "'$1' is missing: install the package $2 (apt-get install $2)"
    echo "$ENGINE.sh: '$1' is missing, installing $2" >&2
    {
        flock 9 # several engines start at once
        command -v "$1" || install_packages "$2"
    } 9>"/tmp/.dualtrack-apt.lock" >&2 || fail "'$1' is missing and apt-get install $2 failed"
    command -v "$1" >/dev/null || fail "'$1' is still missing after apt-get install $2"
}

# Jars with all they need, once per checkout: directory, then group:artifact:version …
fetch_jars() {
    local jars=$1
    shift
    [ -e "$jars/.complete" ] && return
    need java openjdk-17-jre-headless
    need mvn maven
    mkdir -p "$jars"
    (
        flock 9 # several test runs may start at once
        [ -e "$jars/.complete" ] && exit 0
        local pom="$jars/pom.xml" each group artifact version
        {
            echo '<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>jars</artifactId><version>1</version><dependencies>'
            for each in "$@"; do
                IFS=: read -r group artifact version <<<"$each"
                echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
            done
            echo '</dependencies></project>'
        } >"$pom"
        mvn -q -B -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$jars" >&2 \
            || fail "fetching $* with Maven failed"
        touch "$jars/.complete"
    ) 9>"$jars/.lock" || exit 1
}

# Switches of the Java machine, kept for a restart: the first heap, MB.
choose_java() {
    local compiler=()
    [ -z "$BRIEF" ] || compiler=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
    echo "-Xms${1}m" "-Xmx${HEAP}m" "${compiler[@]}" >"$RUN/java"
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

# Is the recorded process still the one we started?
alive() { [ -e "$RUN/pid" ] && grep -aqF "$RUN/$MARK" "/proc/$(cat "$RUN/pid")/cmdline"; } 2>/dev/null

# Runs launch(), which starts the process in the background and leaves its pid in $PID, and waits for
# `ready` (a function of the script) to succeed.
start() {
    if alive; then fail "'$NAME' runs already (pid $(cat "$RUN/pid"))"; fi
    rm -rf "$RUN"
    mkdir -p "$RUN"
    : >"$RUN/engine.log"
    launch
    begun
    [ -z "$WATCH_PID" ] || guard
    describe
}

# Writes down the process just launched and waits for it.
begun() {
    echo "$PID" >"$RUN/pid"
    disown "$PID"
    local deadline=$((SECONDS + READY_SECONDS))
    until ready; do
        # Not `alive`: until it has become the engine, its command line is this script's.
        if ! kill -0 "$PID" 2>/dev/null; then tail -n 30 "$RUN/engine.log" >&2; fail "it ended while starting"; fi
        if [ $SECONDS -ge $deadline ]; then
            tail -n 30 "$RUN/engine.log" >&2
            stop
            fail "it was not ready within $READY_SECONDS s"
        fi
        sleep 0.1
    done
}

guard() {
    setsid bash "$0" watch --name "$NAME" --watch-pid "$WATCH_PID" >/dev/null 2>&1 </dev/null &
    disown $!
}

end_process() { # seconds an orderly end may take
    alive || return 0
    local pid
    pid=$(cat "$RUN/pid")
    kill -CONT "$pid" 2>/dev/null || true # a test may have stopped it
    kill -TERM "$pid" 2>/dev/null || true
    local deadline=$((SECONDS + $1))
    while alive && [ $SECONDS -lt $deadline ]; do sleep 0.1; done
    if alive; then kill -KILL "$pid" 2>/dev/null || true; fi
    while alive; do sleep 0.1; done
}

stop() {
    end_process 10
    rm -rf "$RUN"
}

# Ends the engine when the process it was started for is gone.
watch() {
    while kill -0 "$WATCH_PID" 2>/dev/null && [ -e "$RUN/pid" ]; do sleep 0.5; done
    # Nobody reads its data any more, so it needs no orderly end.
    if alive; then kill -KILL "$(cat "$RUN/pid")" 2>/dev/null || true; fi
    stop
}

# The same process again on the data and ports it had: after a test has killed it.
restart() {
    [ -e "$RUN/pid" ] || fail "'$NAME' was not started: '$ENGINE.sh start --name $NAME' does"
    end_process 10
    # Before it is launched: `ready` must not find the words of the one before.
    : >"$RUN/engine.log"
    again
    begun
    describe
}

main() {
    COMMAND=${1:-}
    [ $# -gt 0 ] && shift
    NAME=$ENGINE WATCH_PID='' SECURE='' DURABLE='' BRIEF='' PROXY_PORT=''
    while [ $# -gt 0 ]; do
        case $1 in
            --secure) SECURE=1; shift; continue ;;
            --durable) DURABLE=1; shift; continue ;;
            --brief) BRIEF=1; shift; continue ;;
        esac
        [ $# -ge 2 ] || fail "$1 needs a value"
        case $1 in
            --name) NAME=$2 ;;
            --watch-pid) WATCH_PID=$2 ;;
            --heap) HEAP=$2 ;;
            --proxy-port) PROXY_PORT=$2 ;;
            *) fail "unknown option $1" ;;
        esac
        shift 2
    done
    case $NAME in *[!a-zA-Z0-9._-]* | '' | .*) fail "--name may hold letters, digits, '.', '_' and '-' only" ;; esac
    RUN="$ROOT/.dev/run/$NAME"
    case $COMMAND in
        start) start ;;
        restart) restart ;;
        stop) stop ;;
        watch) watch ;;
        status) if alive; then describe; else echo "{\"name\":\"$NAME\",\"pid\":null}"; exit 3; fi ;;
        *) fail "usage: $ENGINE.sh start|restart|stop|status --name NAME $USAGE" ;;
    esac
}
