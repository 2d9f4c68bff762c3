#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Streams over a path whose narrow link is in the middle (tcp_pmtu.sh).

  tcp_pmtu.py serve ADDRESS PORT          until it is killed
  tcp_pmtu.py ask ADDRESS PORT            both ways, one after the other; says what each
                                          end knows of the path, its TCP_INFO
  tcp_pmtu.py late ADDRESS PORT           the same on a connection that is open before the
                                          path becomes narrow: says "open", waits for a line
  tcp_pmtu.py refused ADDRESS PORT        says what connect ends with
"""
import errno
import socket
import struct
import sys

LENGTH = 200000


def path_mtu(sock):
    """tcpi_pmtu is the 14th number behind 8 bytes."""
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return struct.unpack_from("=I", info, 8 + 13 * 4)[0]


def take(sock, length):
    got = 0
    while got < length:
        data = sock.recv(65536)
        if not data:
            sys.exit("the stream ends after %d bytes" % got)
        if data.count(b"x") != len(data):
            sys.exit("other bytes than were sent")
        got += len(data)


def serve(address):
    listener = socket.create_server(address)
    print("ready", flush=True)
    while True:
        sock = listener.accept()[0]
        take(sock, LENGTH)
        sock.sendall(b"x" * LENGTH)
        sock.recv(1)
        sock.sendall(b"%5d" % path_mtu(sock))
        sock.close()


def ask(address, is_late):
    sock = socket.create_connection(address, 20)
    if is_late:
        print("open", flush=True)
        sys.stdin.readline()
    sock.sendall(b"x" * LENGTH)
    take(sock, LENGTH)
    sock.sendall(b"?")
    theirs = int(sock.recv(5, socket.MSG_WAITALL))
    print("client %d server %d" % (path_mtu(sock), theirs))


def refused(address):
    sock = socket.socket()
    sock.settimeout(20)
    print(errno.errorcode.get(sock.connect_ex(address)))


def main():
    address = (sys.argv[2], int(sys.argv[3]))
    if sys.argv[1] == "serve":
        serve(address)
    elif sys.argv[1] == "refused":
        refused(address)
    else:
        ask(address, sys.argv[1] == "late")


main()
