# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The programs of udp_rpf.sh.
#
#   udp_rpf.py hear              on port 7000 of everybody; whose datagrams came
#                                before each "end", and to which address
#   udp_rpf.py send TO FROM...   one from each address to each address
import socket
import sys
import signal

IP_PKTINFO = 8


def hear():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("0.0.0.0", 7000))
    s.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    print("ready", flush=True)
    heard = set()
    while True:
        data, ancillary, flags, peer = s.recvmsg(100, 100)
        if data == b"end":
            print("heard", *sorted(heard), flush=True)
            heard = set()
        else:
            to = socket.inet_ntoa(ancillary[0][2][8:12])
            heard.add("%s>%s" % (peer[0], to))


def send(to, *sources):
    for source in sources:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((source, 0))
            for address in to.split(","):
                s.sendto(b"x", (address, 7000))


# From the address that is always let in.
def end(to):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"end", (to, 7000))


signal.alarm(60)
globals()[sys.argv[1]](*sys.argv[2:])
