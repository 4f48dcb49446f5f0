#!/usr/bin/env bash
# A run whose controller is here and whose worker is on a machine without a connection: one archive
# each way per trip. See docs/scale.md.
#
#   here    carried.sh start PROBLEM SPOOL [optimize options]   controller in the background
#   here    carried.sh jobs SPOOL                               waits until there are jobs to carry
#           ... carry the folder SPOOL there ...
#   there   carried.sh work SPOOL OUT [worker options]          leaves OUT/results.tar.gz
#           ... carry OUT/results.tar.gz back ...
#   here    carried.sh collect SPOOL results.tar.gz             then: jobs, until it says "ended"
set -euo pipefail
PYTHON=${PYTHON:-python3}
command=$1
shift
case $command in
start)
    problem=$1 spool=$2
    shift 2
    mkdir -p "$spool"
    nohup "$PYTHON" -m kernelpro optimize "$problem" --executor "spool:$spool,lease_s=0" \
        --plain "$@" >"$spool/controller.out" 2>"$spool/controller.err" </dev/null &
    echo $! >"$spool/controller.pid"
    ;;
jobs)
    spool=$1
    for _ in $(seq 300); do
        if ls "$spool"/jobs/*.job >/dev/null 2>&1; then
            sleep 2 # the rest of the round
            ls "$spool"/jobs/*.job | wc -l
            exit 0
        fi
        if ! kill -0 "$(cat "$spool/controller.pid")" 2>/dev/null; then
            echo ended
            cat "$spool/controller.out"
            exit 0
        fi
        sleep 1
    done
    echo "no job within five minutes; see $spool/controller.err" >&2
    exit 1
    ;;
work)
    spool=$1 out=$2
    shift 2
    back=$(mktemp -d)
    "$PYTHON" -m kernelpro worker --spool "$spool" --results "$back" --drain "$@"
    tar -C "$back" -czf "$out/results.tar.gz" .
    ;;
collect)
    tar -C "$1/results" -xzf "$2"
    ;;
*)
    sed -n '2,12p' "$0" >&2
    exit 2
    ;;
esac
