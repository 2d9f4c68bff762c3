# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The unmodified programs of udp_xdp.sh.
#
#   udp_xdp.py echo ADDRESS PORT             until "bye"; prints how many
#   udp_xdp.py ask ADDRESS PORT CNT LEN [SECONDS]
#                                            prints how many answers were right; waits for
#                                            each so long, or ten
#   udp_xdp.py go_on_asking ADDRESS PORT     from one port; prints each right answer
#   udp_xdp.py forking ADDRESS PORT          an echo that forks first
#   udp_xdp.py hoarding ADDRESS PORT CNT     an echo; what comes to PORT + 1 is left
#                                            lying until CNT datagrams have been
#                                            echoed; prints how many that were
#   udp_xdp.py keeping ADDRESS PORT          an echo; what comes to PORT + 1 is left
#                                            lying until "bye"; prints how many that
#                                            were
#   udp_xdp.py ask_hoarder ADDRESS PORT CNT  ten for PORT + 1 before each question
#   udp_xdp.py heir ADDRESS PORT WAY         forks while datagrams wait; the child
#                                            reads, the parent exits or stays
#   udp_xdp.py bequeath ADDRESS PORT         40 datagrams, half of them late
#   udp_xdp.py shower ADDRESS PORT CNT       asks, and waits for no answer
#   udp_xdp.py say ADDRESS PORT TEXT         one datagram
#   udp_xdp.py numbers_after_removal ADDRESS PORT   which fds it gets then
#   udp_xdp.py look ADDRESS PORT CNT         for what does not come
#   udp_xdp.py asleep ADDRESS PORT CALL...   a thread blocked in each call, on a
#                                            socket of its own
#   udp_xdp.py sharing ADDRESS PORT OPTION   has the port with SO_REUSE...; prints
#                                            how many datagrams came, after each
#                                            second in which none did
#   udp_xdp.py spread ADDRESS PORT CNT       each from a socket of its own
#   udp_xdp.py closing ADDRESS PORT          an echo that closes all it has first
import ctypes
import os
import select
import signal
import socket
import sys
import threading
import time


def echo(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    count = 0
    while True:
        try:
            data, peer = s.recvfrom(70000)
            s.sendto(data, peer)
        except OSError as e:
            print(e, flush=True)
            continue
        count += 1
        if data == b"bye":
            break
    print("echoed", count, flush=True)


def ask(address, port, cnt, length, patience=10):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(float(patience))
    s.connect((address, int(port)))
    good = 0
    for i in range(int(cnt)):
        data = (b"%d." % i) * int(length)
        data = data[:int(length)]
        s.send(data)
        try:
            good += s.recv(70000) == data
        except OSError as e:
            print(e)
            break
    print("right", good)


def go_on_asking(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.1)
    s.connect((address, int(port)))
    number = 0
    while True:
        number += 1
        s.send(b"%d" % number)
        try:
            # what comes late answers an earlier question
            while s.recv(100) != b"%d" % number:
                pass
            print("right", flush=True)
        except TimeoutError:
            pass
        time.sleep(0.01)


def hoarding(address, port, cnt):
    busy = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    slow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    slow.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
    slow.settimeout(1)
    busy.bind((address, int(port)))
    slow.bind((address, int(port) + 1))
    print("ready", flush=True)
    for i in range(int(cnt)):
        data, peer = busy.recvfrom(2000)
        busy.sendto(data, peer)
    right = 0
    try:
        while True:
            right += slow.recv(2000) == b"%d." % right * 200
    except TimeoutError:
        print("hoarded", right, flush=True)
    signal.pause()


def keeping(address, port):
    slow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    slow.bind((address, int(port) + 1))
    slow.settimeout(1)
    echo(address, port)
    cnt = 0
    try:
        while slow.recv(2000):
            cnt += 1
    except TimeoutError:
        print("kept", cnt, flush=True)
    signal.pause()


def ask_hoarder(address, port, cnt):
    slow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    busy = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    busy.settimeout(10)
    busy.connect((address, int(port)))
    slow.connect((address, int(port) + 1))
    good = 0
    for i in range(int(cnt)):
        for j in range(10):
            slow.send(b"%d." % (10 * i + j) * 200)
        busy.send(b"%d" % i)
        try:
            good += busy.recv(2000) == b"%d" % i
        except OSError as e:
            print(e)
            break
    print("right", good)


def heir(address, port, way):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    while s.recv(100) != b"go":
        pass
    time.sleep(0.3)
    parent = os.getpid()
    if os.fork():
        if way == "exit":
            os._exit(0)
        signal.pause()
    while way == "exit" and os.getppid() == parent:
        time.sleep(0.01)
    print("alone", flush=True)
    s.settimeout(10)
    seen = set()
    try:
        while len(seen) < 40:
            seen.add(s.recv(100))
    except TimeoutError:
        pass
    print("heir", len(seen), flush=True)


def bequeath(address, port, when):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, int(port)))
    if when == "early":
        s.send(b"go")
    for i in range(20):
        s.send(b"%s %d" % (when.encode(), i))


def shower(address, port, cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, int(port)))
    for i in range(int(cnt)):
        s.send(b"%d" % i)


def parting(address, port, way="exit"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((address, int(port)))
    s.send(b"hello")
    time.sleep(0.1)
    s.send(b"and good bye")
    if way == "exec":
        os.execv("/bin/true", ["true"])
    os._exit(0)


def fail_card(what):
    """Something happens to the software card of this process."""
    card = ctypes.CDLL(None)
    if what == "removed":
        return card.softcx_remove(b"mlx5_0")
    if what.startswith("unseen "):
        print("looks away", flush=True)
        while not os.path.exists(what[7:]):
            time.sleep(0.01)
        return 0
    if what == "blink":
        def up():
            card.softcx_port_set(b"mlx5_0", 1)
        threading.Timer(1.5, up).start()
        return card.softcx_port_set(b"mlx5_0", 0)
    fail = card.softcx_fail_qp if what == "queue" else card.softcx_fail_cq
    for number in range(1 << 16):
        if fail(b"mlx5_0", number) == 0:
            return 0
    return 1


def echo_on_a_card(address, port):
    """An echo, also of what happens to its card by its own word."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(2000)
        if data[:5] == b"card ":
            print(data.decode(), fail_card(data[5:].decode()), flush=True)
        else:
            s.sendto(data, peer)


def numbers_after_removal(address, port):
    """Whether the program has numbers then that it had not when there was a card. The software
    card has some, too, which it closes."""
    def numbers():
        found = set()
        for fd in range(1000):
            try:
                os.fstat(fd)
                found.add(fd)
            except OSError:
                pass
        return found

    def is_closed():
        with open(os.environ["VMA_LOG_FILE"], errors="replace") as log:
            return "a completion queue is not destroyed" in log.read()

    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    s.settimeout(0.05)
    before = numbers()
    fail_card("removed")
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if is_closed():
            end = min(end, time.monotonic() + 0.5)
        try:
            s.recv(100)
        except OSError:
            pass
    print("closed", is_closed(), "new", numbers() - before, flush=True)


def ask_patiently(address, port, cnt):
    """Each until there is an answer; none may be to a question never asked."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.1)
    s.connect((address, int(port)))
    wrong = again = 0
    for i in range(int(cnt)):
        question = b"question %d" % i * 20
        for attempt in range(100):
            s.send(question)
            try:
                answer = s.recv(2000)
                while answer != question:
                    # an answer to an earlier one, which came twice or late
                    number = int(answer[9:].split(b"question")[0])
                    wrong += number >= i or answer != b"question %d" % number * 20
                    answer = s.recv(2000)
                break
            except OSError:
                again += 1
    print("wrong", wrong, "again", again > 0)


def say(address, port, text):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(text.encode(), (address, int(port)))


def look(address, port, cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    s.setblocking(False)
    for i in range(int(cnt)):
        try:
            print(s.recv(2000))
        except BlockingIOError:
            pass
    print("looked", cnt)


def block(call, s):
    if call == "recv":
        s.recv(2000)
    elif call == "select":
        select.select([s], [], [])
    elif call == "poll":
        poll = select.poll()
        poll.register(s, select.POLLIN)
        poll.poll()
    elif call == "epoll":
        epoll = select.epoll()
        epoll.register(s, select.EPOLLIN)
        epoll.poll()
    else:
        signal.pause()


def asleep(address, port, *calls):
    for number, call in enumerate(calls):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((address, int(port) + number))
        threading.Thread(target=block, args=(call, s)).start()
    print("ready", flush=True)


def sharing(address, port, option):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_" + option), 1)
    s.bind((address, int(port)))
    s.settimeout(0.2)
    print("ready", flush=True)
    count = 0
    while True:
        try:
            s.recv(100)
            count += 1
        except TimeoutError:
            if count:
                print("heard", count, flush=True)
            count = 0


def spread(address, port, cnt):
    for i in range(int(cnt)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"x", (address, int(port)))


def closing(address, port):
    # as daemons do, and then the same again
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    os.closerange(3, 4096)
    for fd in range(3, 300):
        try:
            os.close(fd)
        except OSError:
            pass
    echo(address, port)


def forking(address, port):
    # the child holds the inherited fds as long as it sleeps
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, int(port)))
    if os.fork() == 0:
        signal.alarm(20)
        signal.pause()
    print("ready", flush=True)
    while True:
        data, peer = s.recvfrom(70000)
        s.sendto(data, peer)


# nobody may be left behind
signal.alarm(60)
globals()[sys.argv[1]](*sys.argv[2:])
