# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What tcp_soak.sh asks servers, and how it reads what programs say. Fails when something
# is wrong.
#
#   tcp_soak.py redis ADDRESS PORT SECONDS   values that have their checksums in them
#   tcp_soak.py iperf3 FILE                  each way has received something
import hashlib
import json
import random
import socket
import sys
import threading
import time

CONNECTIONS = 8
KEYS = 50
LEN_MAX = 100000


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def value():
    body = random.randbytes(random.randrange(LEN_MAX))
    return hashlib.sha256(body).digest() + body


def is_right(reply):
    return hashlib.sha256(reply[32:]).digest() == reply[:32]


class Asker(threading.Thread):
    """Has keys of its own, so it knows what each of them is."""

    def __init__(self, name, address, until):
        super().__init__()
        self.mine, self.until = name, until
        self.cnt = self.wrong = 0
        self.error = "did not finish"
        self.sock = socket.create_connection(address, timeout=60)
        self.stream = self.sock.makefile("rb")

    def reply(self):
        line = self.stream.readline()
        if not line.startswith(b"$"):
            return line
        return self.stream.read(int(line[1:]) + 2)[:-2]

    def run(self):
        try:
            self.ask()
            self.error = None
        except OSError as e:
            self.error = f"({e} after {self.cnt})"
        self.sock.close()

    def ask(self):
        sums = {}
        while time.monotonic() < self.until:
            key = b"%d.%d" % (self.mine, random.randrange(KEYS))
            new = value()
            sums[key] = new[:32]
            asked = random.choices(list(sums), k=4)
            self.sock.sendall(command(b"SET", key, new) +
                              b"".join(command(b"GET", k) for k in asked))
            self.wrong += self.reply() != b"+OK\r\n"
            for k in asked:
                got = self.reply()
                self.wrong += not is_right(got) or got[:32] != sums[k]
                self.cnt += 1


def redis(address, port, seconds):
    until = time.monotonic() + int(seconds)
    askers = [Asker(i, (address, int(port)), until) for i in range(CONNECTIONS)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    errors = [asker.error for asker in askers if asker.error]
    cnt, wrong = sum(a.cnt for a in askers), sum(a.wrong for a in askers)
    print("# values", cnt, "wrong", wrong, *errors)
    return cnt > 0 and wrong == 0 and not errors


def iperf3(path):
    end = json.load(open(path))["end"]
    rates = {name: end[name] for name in sorted(end) if name.startswith("sum_received")}
    for name, sums in rates.items():
        print("#", name, "Mbit/s", round(sums["bits_per_second"] / 1e6, 1))
    return bool(rates) and all(sums["bytes"] > 0 for sums in rates.values())


what, *rest = sys.argv[1:]
sys.exit(not {"redis": redis, "iperf3": iperf3}[what](*rest))
