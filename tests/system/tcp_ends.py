#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the programs of tcp_ends.sh do.

    tcp_ends.py CASE ADDRESS PORT [ARGUMENT...]

The stream that is written is the numbers from 0 on, so that a byte that is missing, doubled
or at another place is seen."""
import array
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

from checksums import checksum

case, there, args = sys.argv[1], (sys.argv[2], int(sys.argv[3])), sys.argv[4:]
SO_PEEK_OFF, MSG_FASTOPEN, TCP_FASTOPEN, TCP_NOTSENT_LOWAT = 42, 0x20000000, 23, 25
libc = ctypes.CDLL(None, use_errno=True)


def say(*words):
    print(*words, flush=True)


def stream(length):
    numbers = array.array("I", range((length + 3) // 4))
    numbers.byteswap()
    return numbers.tobytes()[:length]


def result(call):
    try:
        return call()
    except TimeoutError:
        return "nothing"
    except OSError as e:
        return errno.errorcode[e.errno]


def await_file(name):
    end = time.monotonic() + 20
    while not os.path.exists(name) and time.monotonic() < end:
        time.sleep(0.01)


# -- the peer, on the kernel -------------------------------------------------------------------


def sink():
    """Takes one connection after the other, reads when the file that args[0] names is there,
    and says how much of the stream came, and how it ended."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    server.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 16)
    server.bind(there)
    server.listen(16)
    whole = stream(16 << 20)
    say("ready")
    while True:
        s = server.accept()[0]
        await_file(args[0])
        got, end = bytearray(), "end"
        try:
            while more := s.recv(1 << 20):
                got += more
        except OSError as e:
            end = errno.errorcode[e.errno]
        say("got", len(got), got == whole[:len(got)], end)
        s.close()


def answerer():
    """With Fast Open: says what comes, and answers it."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 16)
    server.bind(there)
    server.listen(16)
    say("ready")
    while True:
        s = server.accept()[0]
        s.settimeout(20)
        got = result(lambda: s.recv(100))
        if got != b"":
            result(lambda: s.sendall(b"answer"))
            while (more := result(lambda: s.recv(100))) and isinstance(more, bytes):
                got += more
        say("got", got)
        s.close()


def forgetful():
    """Is no kernel's, and answers one connection: the end of the other side it acknowledges
    with its own end, behind four bytes. When the file that args[0] names is there it says
    its end once more, as who has missed the acknowledgment, and tells what the answer is."""
    fin, syn, rst, ack = 1, 2, 4, 16
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    link.bind(("v0", 0x0800))
    say("ready")

    def hear(seconds):
        """A segment for us: its frame, number and flags, or None."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([link], [], [], left)[0]:
                break
            frame = link.recv(2000)
            if frame[23] == 6 and frame[30:34] == socket.inet_aton(there[0]):
                return frame, struct.unpack_from("!I", frame, 38)[0], frame[47]
        return None

    def answer(frame, flags, seq, to, data=b""):
        ports = struct.unpack_from("!HH", frame, 34)
        tcp = bytearray(struct.pack("!HHIIBBHHH", *ports[::-1], seq, to & 0xffffffff, 5 << 4,
                                    flags, 65535, 0, 0) + data)
        names = frame[30:34] + frame[26:30]
        struct.pack_into("!H", tcp, 16, checksum(names + struct.pack("!HH", 6, len(tcp)) + tcp))
        ip = bytearray(struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) +
                       names)
        struct.pack_into("!H", ip, 10, checksum(bytes(ip)))
        link.send(frame[6:12] + frame[:6] + frame[12:14] + ip + tcp)

    while True:
        frame, seq, flags = hear(20)
        if flags & syn:
            answer(frame, syn | ack, 999, seq + 1)
        elif flags & fin:
            break
    answer(frame, ack | fin, 1000, seq + 1, b"left")
    await_file(args[0])
    while hear(0.1):
        pass
    answer(frame, ack | fin, 1004, seq + 1)
    heard = hear(5)
    say("answer", "nothing" if not heard else "RST" if heard[2] & rst else
        "ACK" if heard[2] == ack else heard[2])


# -- signals in the middle of a call -----------------------------------------------------------


def interrupted():
    """args: write or sendfile; handler or default; where to keep what the calls have said. The
    last call has more than fits anywhere."""
    call, action, account = args
    stops = []
    if action == "handler":
        signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
    s = socket.create_connection(there)
    whole = stream(12 << 20)
    file = os.memfd_create("stream")
    os.write(file, whole)
    counts = os.open(account, os.O_RDWR | os.O_CREAT)
    total = 0

    def write(length):
        text = whole[total:total + length]
        return libc.write(s.fileno(), text, ctypes.c_size_t(len(text)))

    def sendfile(length):
        return libc.sendfile(s.fileno(), file, ctypes.byref(ctypes.c_long(total)),
                             ctypes.c_size_t(length))

    libc.write.restype = libc.sendfile.restype = ctypes.c_ssize_t
    for length in (20000,) * 3 + (10 << 20,):
        if length > 20000:
            say("writing")
        n = (write if call == "write" else sendfile)(length)
        if n > 0:
            total += n
            os.pwrite(counts, b"%-10d" % total, 0)
    say("interrupted", bool(stops), 60000 < total < 10 << 20)
    os._exit(0)


# -- VMA_WAY_BACK=off ----------------------------------------------------------------------------


def say_what_is_left(s):
    s.settimeout(5)
    say("recv", result(lambda: s.recv(10)), "send", result(lambda: s.send(b"x")))
    say("peer", result(s.getpeername))


def filled():
    s = socket.create_connection(there)
    s.set_inheritable(True)
    s.sendall(stream(60000))
    return s


def becomes_another():
    s = filled()
    say("written")
    # without the library, which would begin its log anew
    del os.environ["LD_PRELOAD"]
    os.execv(sys.executable, [sys.executable, sys.argv[0], "inherits", sys.argv[2],
                              sys.argv[3], str(s.fileno())])


def inherits():
    say_what_is_left(socket.socket(fileno=int(args[0])))


def becomes_nothing():
    """An exec that fails."""
    s = filled()
    say("written")
    say("exec", result(lambda: os.execv("/nowhere", ["nowhere"])))
    say_what_is_left(s)


def installs_filter():
    """One that allows everything."""
    s = filled()
    say("written")
    code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
    prog = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 1, ctypes.addressof(code)))
    libc.prctl(38, 1, 0, 0, 0)
    say("filter", libc.prctl(22, 2, prog, 0, 0))
    say_what_is_left(s)


# -- TIME_WAIT -----------------------------------------------------------------------------------


def over():
    """Both ends are through, and ours was the first."""
    s = socket.create_connection(there)
    s.set_inheritable(True)
    s.shutdown(socket.SHUT_WR)
    poll = select.poll()
    poll.register(s, select.POLLRDHUP)
    say("over", bool(poll.poll(20000)))
    return s


def over_before_exec():
    s = over()
    os.environ.pop("LD_PRELOAD", None)
    os.execv(sys.executable, [sys.executable, sys.argv[0], "reads_on", sys.argv[2],
                              sys.argv[3], str(s.fileno())])


def reads_on():
    s = socket.socket(fileno=int(args[0]))
    say("recv", result(lambda: s.recv(10)), result(lambda: s.recv(10)))


def over_before_fork():
    s = over()
    pid = os.fork()
    if not pid:
        say("recv", result(lambda: s.recv(10)), result(lambda: s.recv(10)))
        os._exit(0)
    os.waitpid(pid, 0)


def over_before_it_is_sent():
    s, pair = over(), socket.socketpair()
    socket.send_fds(pair[0], [b"x"], [s.fileno()])
    s.close()
    s = socket.socket(fileno=socket.recv_fds(pair[1], 1, 1)[1][0])
    say("recv", result(lambda: s.recv(10)), result(lambda: s.recv(10)))


def over_before_exit():
    """The program ends with it."""
    s = over()
    say("recv", result(lambda: s.recv(10)), result(lambda: s.recv(10)))
    os._exit(0)


def leaves_little_unsent():
    """More than TCP_NOTSENT_LOWAT waits for a peer that does not read, when the program ends."""
    s = socket.create_connection(there)
    s.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384)
    s.setblocking(False)
    room = select.poll()
    room.register(s, select.POLLOUT)
    sent = 0
    while room.poll(500):
        sent += s.send(stream(1 << 20)[sent:])
    s.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, 4096)
    say("sent", sent)


def patient():
    """A connect() under way, whose answer comes late."""
    s = socket.socket()
    s.setblocking(False)
    say("connect", result(lambda: s.connect(there)))
    poll = select.poll()
    poll.register(s, select.POLLOUT)
    say("poll", [event[1] for event in poll.poll(30000)])
    say("sent", result(lambda: s.send(b"at last")))
    s.close()


def over_before_exit_by_number():
    """And by the call's number."""
    s = over()
    say("recv", result(lambda: s.recv(10)), result(lambda: s.recv(10)))
    libc.syscall(231, 0)


def over_and_closed():
    """The program has closed it, and ends."""
    s = over()
    say("recv", result(lambda: s.recv(10)), result(lambda: s.recv(10)))
    s.close()


def over_and_goes_on():
    """The program has closed it, and waits for the file that args[0] names."""
    over_and_closed()
    say("closed")
    await_file(args[0])


def closes_many():
    """args[0] connections that it has closed, one after the other."""
    for _ in range(int(args[0])):
        s = socket.create_connection(there)
        s.shutdown(socket.SHUT_WR)
        assert s.recv(1) == b""
        s.close()
    say("closed")
    await_file(args[1])


def over_before_it_becomes_another():
    """The program has closed it, and becomes another."""
    over_and_closed()
    os.execve("/bin/true", ["true"], {})


# -- Fast Open -----------------------------------------------------------------------------------


def fast(flags=0):
    s = socket.socket()
    s.set_inheritable(True)
    if flags:
        s.setblocking(False)
    return s, result(lambda: s.sendto(b"only once", MSG_FASTOPEN, there))


def cookie():
    """What a first connection leaves behind."""
    s = fast()[0]
    say("answered", s.recv(100))


def learn():
    """A first connection, which leaves a cookie, and the word to go on."""
    first = fast()[0]
    first.recv(100)
    first.close()
    say("learned")
    await_file(args[0])


def leaves():
    """Ends while nobody has answered its SYN."""
    learn()
    s, sent = fast(1)
    say("sent", sent)
    before = time.monotonic()
    pid = os.fork()
    if pid:
        os._exit(0)
    while os.getppid() != 1 and time.monotonic() < before + 20:
        time.sleep(0.01)
    say("took", "long" if time.monotonic() - before > 5 else "not long")


def hands_on():
    """Becomes another program meanwhile."""
    learn()
    s, sent = fast(1)
    say("sent", sent)
    os.environ.pop("LD_PRELOAD", None)
    os.execv(sys.executable, [sys.executable, sys.argv[0], "goes_on", sys.argv[2],
                              sys.argv[3], str(s.fileno())])


def goes_on():
    s = socket.socket(fileno=int(args[0]))
    say("awaits")
    select.select([], [s], [], 20)
    say("error", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
    s.settimeout(20)
    say("answer", result(lambda: s.recv(100)))


def waits():
    """A thread waits in sendto() when the socket goes back."""
    learn()
    s = socket.socket()
    sent = []
    thread = threading.Thread(target=lambda: sent.append(
        result(lambda: s.sendto(b"only once", MSG_FASTOPEN, there))))
    thread.start()
    time.sleep(0.2)
    say("waits", not sent)
    s.setsockopt(socket.SOL_SOCKET, SO_PEEK_OFF, -1)
    thread.join()
    say("sent", sent[0])
    s.settimeout(20)
    say("answer", result(lambda: s.recv(100)))


cases = {f.__name__: f for f in (
    sink, answerer, forgetful, interrupted, becomes_another, inherits, becomes_nothing,
    installs_filter, over_before_exec, reads_on, over_before_fork, over_before_it_is_sent,
    leaves_little_unsent, patient, over_before_exit, over_before_exit_by_number, over_and_closed, over_and_goes_on, closes_many, over_before_it_becomes_another, leaves, hands_on, goes_on, waits)}
cases[case]()
