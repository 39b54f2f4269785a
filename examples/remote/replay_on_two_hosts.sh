#!/usr/bin/env bash
# Replay a recorded suite on two hosts through xdist's own remote workers.
#
#     sudo examples/remote/replay_on_two_hosts.sh
#
# The two hosts are network namespaces of this machine, so that the script can be run anywhere; with real hosts,
# start the same socket server on each (or use --tx ssh=HOST, which needs none), and leave the namespaces out.
# Remote workers get the suite's files by rsync, replay, and send results and made cases back: recording stays local.
# The socket server runs whatever reaches it: only ever start it on a network that you trust.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=${PYTHON:-.venv/bin/python}
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
config=${1:-inputs/configs/refund_agent.yml}
port=8887
work=$(mktemp -d)
servers=()

cleanup() {
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
    ip netns del jrh-one 2>/dev/null || true
    ip netns del jrh-two 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

host() { # NAME SUBNET: a namespace that this one reaches over a veth pair
    ip netns add "jrh-$1"
    ip link add "jrh-$1" type veth peer name eth0 netns "jrh-$1"
    ip addr add "10.203.$2.1/30" dev "jrh-$1"
    ip link set "jrh-$1" up
    ip -n "jrh-$1" addr add "10.203.$2.2/30" dev eth0
    ip -n "jrh-$1" link set eth0 up
    ip -n "jrh-$1" link set lo up
    mkdir "$work/$1"
    (cd "$work/$1" && exec ip netns exec "jrh-$1" "$python" -m execnet.script.socketserver "10.203.$2.2:$port") &
    servers+=($!)
}

host one 1
host two 2
for address in 10.203.1.2 10.203.2.2; do
    until (exec 3<>"/dev/tcp/$address/$port") 2>/dev/null; do sleep 0.1; done
done

"$python" -m pytest "--jrh-config=$config" -p no:rerunfailures -d --rsyncdir=inputs \
    "--tx=socket=10.203.1.2:$port//chdir=$work/one" "--tx=socket=10.203.2.2:$port//chdir=$work/two"
