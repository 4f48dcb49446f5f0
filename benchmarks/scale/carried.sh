#!/usr/bin/env bash
# A run whose controller is here and whose worker is on a machine without a connection: one archive
# each way per round. See docs/scale.md.
#
#   here    carried.sh start PROBLEM SPOOL [optimize options]   controller in the background
#           carried.sh resume RUN SPOOL [optimize options]      the same for a run that has begun
#           ... carry the folder SPOOL there ...
#   there   carried.sh work SPOOL OUT [worker options]          leaves OUT/results.tar.gz
#           ... carry OUT/results.tar.gz back ...
#   here    carried.sh collect SPOOL results.tar.gz             until it says "ended"
#
# start, resume and collect end when the next jobs can be carried (or with `carried.sh jobs SPOOL`),
# or with the run's own output. `carried.sh stop SPOOL` ends the controller; the run can be resumed.
# A round each for the survey, for every --parallel evaluations, and for the second measurement.
#
# PYTHON: the interpreter. LIMIT_S (480): seconds that `work` may take; what it has not done by then
# stays for the next round. QUIET_S (3): seconds without a new job after which a round is complete.
# WAIT_S (300): how long to wait for the next jobs.
set -euo pipefail
PYTHON=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHONPATH="$root/src${PYTHONPATH:+:$PYTHONPATH}"

start() { # SPOOL optimize-arguments...
    local spool=$1
    shift
    mkdir -p "$spool"
    if [ -e "$spool/controller.pid" ] && kill -0 "$(cat "$spool/controller.pid")" 2>/dev/null; then
        echo "a controller is at work on $spool (process $(cat "$spool/controller.pid"))" >&2
        exit 1
    fi
    rm -f "$spool/controller.status"
    # A shell around it keeps the exit status. Job control (-m): without it a shell makes what it
    # starts in the background deaf to the interrupt that ends a run cleanly.
    set -m
    nohup bash -mc '
        trap "kill -INT \$child" TERM
        "$@" >"$0/controller.out" 2>"$0/controller.err" </dev/null &
        child=$!
        while wait $child; status=$?; kill -0 $child 2>/dev/null; do :; done
        echo $status >"$0/controller.status"
    ' "$spool" "$PYTHON" -m kernelpro optimize "$@" \
        --executor "spool:$spool,lease_s=0" --plain >/dev/null 2>&1 </dev/null &
    echo $! >"$spool/controller.pid"
    set +m
}

listed() { # SPOOL: the jobs that can be carried, a line each
    (cd "$1/jobs" 2>/dev/null && ls | grep '\.job$') || true
}

jobs_of() { # SPOOL: wait until a round is complete; how many jobs it has, or how the run ended
    local spool=$1 before="" now quiet=0
    for _ in $(seq "${WAIT_S:-300}"); do
        if ! kill -0 "$(cat "$spool/controller.pid")" 2>/dev/null; then
            local status
            status=$(cat "$spool/controller.status" 2>/dev/null || echo "unknown: it was killed")
            echo "ended with exit status $status"
            cat "$spool/controller.out"
            [ "$status" = 0 ] || tail -20 "$spool/controller.err" >&2
            [ "$status" = 0 ] && exit 0 || exit 1
        fi
        now=$(listed "$spool")
        # Results that were not looked at yet belong to jobs that are still listed.
        if [ -n "$now" ] && [ "$now" = "$before" ] && [ -z "$(ls "$spool/results")" ]; then
            quiet=$((quiet + 1))
        else
            quiet=0
        fi
        if [ "$quiet" -ge "${QUIET_S:-3}" ]; then
            echo "$(wc -l <<<"$now") jobs to carry"
            exit 0
        fi
        before=$now
        sleep 1
    done
    echo "no jobs within ${WAIT_S:-300} s; see $spool/controller.err" >&2
    exit 1
}

work() { # SPOOL OUT worker-options...
    local spool=$1 out=$2 back status=0
    shift 2
    back=$(mktemp -d)
    timeout --signal=TERM --kill-after=30 "${LIMIT_S:-480}" "$PYTHON" -m kernelpro worker \
        --spool "$spool" --results "$back" --drain "$@" || status=$?
    # Whatever happened to the worker, results are whole files or not there.
    mkdir -p "$out"
    (cd "$back" && find . -name '*.result' -type f ! -name '.*') >"$back/.list"
    tar -C "$back" -czf "$out/results.tar.gz.part" -T "$back/.list"
    mv "$out/results.tar.gz.part" "$out/results.tar.gz"
    echo "$(wc -l <"$back/.list") results in $out/results.tar.gz"
    rm -r "$back"
    case $status in
    0) ;;
    124 | 130 | 137) echo "the time was up; the other jobs stay for the next round" ;;
    *) exit "$status" ;;
    esac
}

collect() { # SPOOL ARCHIVE
    local spool=$1 archive=$2 staging file
    # Beside the spool's folders, so that a rename makes each result appear whole.
    staging=$(mktemp -d "$spool/carried.XXXXXX")
    tar -C "$staging" -xzf "$archive"
    for file in "$staging"/*.result; do
        [ -e "$file" ] || continue
        mv "$file" "$spool/results/"
    done
    rm -r "$staging"
}

command=${1:-help}
shift || true
case $command in
start | resume)
    problem=$1 spool=$2
    shift 2
    [ "$command" = start ] || problem="--resume=$problem"
    start "$spool" "$problem" "$@"
    jobs_of "$spool"
    ;;
jobs) jobs_of "$1" ;;
work) work "$@" ;;
collect)
    collect "$1" "$2"
    jobs_of "$1"
    ;;
stop)
    kill -TERM "$(cat "$1/controller.pid")"
    while kill -0 "$(cat "$1/controller.pid")" 2>/dev/null; do sleep 0.2; done
    ;;
*)
    sed -n '2,20p' "$0" >&2
    exit 2
    ;;
esac
