# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The other ends of udp_programs.sh.
#
#   iperf FILE            of iperf3's JSON: datagrams received or lost, lost ones
#   names ADDRESS PORT    a name server: hostN.anything is 10.9.8.N
#   many ADDRESS CNT      an echo on so many ports from 10000; says the memory of each
#   reach ADDRESS CNT     asks each of them; prints how many answered
import json
import resource
import select
import signal
import socket
import struct
import sys

FIRST_PORT = 10000


def iperf(path):
    with open(path) as f:
        end = json.load(f)["end"]["sum"]
    print(end["packets"], end["lost_packets"])


def names(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    while True:
        query, peer = s.recvfrom(4096)
        first = query[13:13 + query[12]]
        question = query[12:query.index(0, 12) + 5]
        number = int(first[len("host"):])
        s.sendto(query[:2] + struct.pack("!HHHHH", 0x8580, 1, 1, 0, 0) +
                 question + struct.pack("!HHHIHBBBB", 0xc00c, 1, 1, 60, 4,
                                        10, 9, 8, number), peer)


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def bound(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, port))
    s.setblocking(False)
    return s


def many(address, cnt):
    cnt = int(cnt)
    resource.setrlimit(resource.RLIMIT_NOFILE, (cnt + 200, cnt + 200))
    poll = select.epoll()
    sockets = {}
    # the first ones bring the library's own memory
    for i in range(cnt):
        if i == 100:
            before = resident()
        s = bound(address, FIRST_PORT + i)
        sockets[s.fileno()] = s
        poll.register(s.fileno(), select.EPOLLIN)
    print("ready", (resident() - before) // (cnt - 100), flush=True)
    while True:
        for fd, _ in poll.poll():
            s = sockets[fd]
            try:
                data, peer = s.recvfrom(2048)
            except BlockingIOError:
                continue
            s.sendto(data, peer)


def reach(address, cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(5)
    reached = 0
    for i in range(int(cnt)):
        s.sendto(b"%d" % i, (address, FIRST_PORT + i))
        data, peer = s.recvfrom(2048)
        reached += data == b"%d" % i and peer[1] == FIRST_PORT + i
    print("reached", reached)


# nobody may be left behind
signal.alarm(90)
globals()[sys.argv[1]](*sys.argv[2:])
