#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Instructions for calls of UDP and TCP on the software ConnectX (tests/softcx), by single
# steps: on the card's own queues, with the usual lock and with that of the latency
# profile, and by portable verbs. What the card does is not counted. Then what the card has
# counted meanwhile (doc/card-packets.txt). Ten minutes.
# Usage: card_instructions.sh STEPPER ECHO LIBRARY CARD
set -eu
stepper=$1 echo=$2
libraries="$(realpath "$3") $(realpath "$4")"
. "$(dirname "$0")/udp_lab.sh"
for end in $a $b; do
	ip netns exec "$end" ethtool -K v0 tso off gso off gro off >/dev/null
done
# until the kernel says that the port is active
sleep 1.2
ip netns exec $b "$echo" echo 10.79.0.2 &
echo_pid=$!
# One for what is sent, and one that sends it back.
ip netns exec $b python3 -c "
import socket
import threading
def serve(port, answer):
    server = socket.create_server(('10.79.0.2', port))
    while True:
        peer = server.accept()[0]
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := peer.recv(1 << 20):
            answer(peer, data)
threading.Thread(target=serve, args=(7008, socket.socket.sendall)).start()
serve(7007, lambda peer, data: None)" &
servers_pid=$!
trap 'kill $servers_pid; clean_up' EXIT

# The library's thread leaves what arrives to the receive that is measured.
export VMA_PROGRESS_ENGINE_INTERVAL=0 SOFTCX=mlx5_0:v0 VMA_LOG_FILE=$work/log
export SOFTCX_STATS=1

# What is on average for each frame.
per_frame() {
	awk '$2 == "mlx5_0:" { n[$3] = $4 }
		END {
			sent = n["tx_wire"]; received = n["rx_delivered"]
			printf "for each frame sent: %.2f doorbells, %.2f of them with the entry, %.2f blocks of 64 bytes, %.3f completions\n",
				n["bells"] / sent, (n["bf_entries"] + n["bf_unsure"]) / sent,
				n["tx_entry_blocks"] / sent, (n["cqes"] - received) / sent
			printf "for each frame received: %.3f updates of the queue, %.3f armings\n",
				n["rx_refills"] / received, n["arms"] / received
		}' "$work/card"
}

# count RING THREAD_MODE
count() {
	VMA_RING=$1 VMA_THREAD_MODE=$2 ip netns exec $a timeout 600 \
		taskset -c 1 "$stepper" 10.79.0.2 "$libraries" \
		>"$work/table" 2>"$work/card" ||
		{ cat "$work/log" "$work/card"; exit 1; }
	per_frame >>"$work/table"
	grep -q "is driven by $1" "$work/log" || { cat "$work/log"; exit 1; }
	sed "s/^/$1, VMA_THREAD_MODE=$2: /" "$work/table"
}
for mode in 1 0; do
	for ring in mlx5 verbs; do
		count $ring $mode
	done
done
