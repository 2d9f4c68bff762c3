#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What programs do that give up their rights (tcp_rights.sh).

    tcp_rights.py CASE PEER PORT

The peer is tcp_peer, of whose service `echo` each connection asks."""
import ctypes
import errno
import fcntl
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

case, peer, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
# What the processes of one user lock in memory the kernel counts together, and forgets a moment
# after their end.
NOBODY = int(os.environ.get("NOBODY") or 20000 + os.getpid() % 30000)
FIOASYNC = 0x5452


def connected():
    s = socket.create_connection((peer, port), timeout=10)
    s.settimeout(None)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.sendall(b"echo 0 0\n")
    return s


def echoed(s, cnt):
    good = 0
    for i in range(cnt):
        text = b"%d" % i
        s.sendall(text)
        back = b""
        while len(back) < len(text):
            more = s.recv(100)
            if not more:
                return good
            back += more
        good += back == text
    return good


def say(*words):
    print(*words, flush=True)


def helpers(of=None):
    """The processes that keep a right for this one."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                name = file.read().rstrip(b"\0")
        except OSError:
            continue
        if name == b"vma: way back for %d" % (of or os.getpid()):
            found.append(int(pid))
    return found


def status_of(pid, *names):
    with open(f"/proc/{pid}/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return [lines[name].strip() for name in names]


def await_true(what):
    end = time.monotonic() + 10
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


def goes_on():
    """Connections from before and later are ours; a child has one given back."""
    older = connected()
    say("before", echoed(older, 10))
    os.setuid(NOBODY)
    later = connected()
    say("without rights", echoed(older, 400), echoed(later, 400))


def comes_back():
    """A way back without rights: a child uses what its parent has."""
    s = connected()
    os.setuid(NOBODY)
    say("without rights", echoed(s, 10))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10))


def comes_back_with_rights():
    s = connected()
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10))


def reaper():
    """Orphans come to this process."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    s, other = connected(), connected()
    say("echo", echoed(s, 10), echoed(other, 10))
    say("helpers", len(helpers()))


def goes_unnoticed():
    """Nothing of the helper is to be seen but its name among the processes."""
    heard = []
    signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))
    s = connected()
    fds = sorted(os.listdir("/proc/self/fd"), key=int)
    low = [fd for fd in fds if int(fd) < 1000]
    os.setuid(NOBODY)
    say("descriptors", [fd for fd in sorted(os.listdir("/proc/self/fd"), key=int)
                        if int(fd) < 1000] == low)
    try:
        say("wait", os.wait())
    except ChildProcessError:
        say("no child")
    found = helpers()
    say("helpers", len(found))
    rights, inherited, ambient, filtered = status_of(
        found[0], "CapEff", "CapInh", "CapAmb", "Seccomp")
    say("rights", int(rights, 16) == 1 << 12 | 1 << 13 | 1 << 38 | 1 << 39, int(ambient, 16), filtered)
    say("of its own", len(os.listdir(f"/proc/{found[0]}/fd"))
        if os.geteuid() == 0 else "not to be seen")
    say("session", os.getsid(found[0]) == found[0])
    say("echo", echoed(s, 10), heard)
    print("helper", found[0], file=sys.stderr, flush=True)


def leaves_its_directory():
    """The program goes on elsewhere, as daemons do, and the directory can be unmounted."""
    with tempfile.TemporaryDirectory() as start:
        os.chdir(start)
        s = connected()
        os.chdir("/")
        for pid in helpers():
            say("helper is in", os.readlink(f"/proc/{pid}/cwd"))
    say("echo", echoed(s, 10))


def refused(call):
    try:
        call()
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]


def stays():
    """Nothing goes back: what would need it is refused, and the connection goes on."""
    s = connected()
    say("asynchronous", refused(lambda: fcntl.ioctl(s, FIOASYNC, struct.pack("i", 1))))
    ends = socket.socketpair()
    say("handed on", refused(lambda: socket.send_fds(ends[0], [b"x"], [s.fileno()])))
    ends[0].sendall(b"y")
    say("other end", ends[1].recv(10))
    pid = os.fork()
    if pid == 0:
        say("child", refused(lambda: s.sendall(b"z")), refused(lambda: s.recv(10)))
        os._exit(0)
    os.waitpid(pid, 0)
    say("parent", echoed(s, 10))
    say("helpers", len(helpers()))


def ends_full():
    """With more than the peer takes."""
    s = socket.create_connection((peer, port))
    s.setblocking(False)
    sent = refused = 0
    # what is under way makes room for a moment
    while refused < 50:
        try:
            sent += s.send(bytes(65536))
            refused = 0
        except BlockingIOError:
            refused += 1
            time.sleep(0.01)
    say("full", sent > 100000)
    before = time.monotonic()
    if os.fork():
        os._exit(0)
    # the child of a process that is gone
    while os.getppid() != 1 and time.monotonic() < before + 20:
        time.sleep(0.01)
    say("took", "as long as allowed" if 0.3 <= time.monotonic() - before < 5 else
        time.monotonic() - before)


def reads_late():
    """The peer of ends_full: begins when it is told to, and says how it ended."""
    server = socket.create_server((peer, port))
    say("ready")
    s = server.accept()[0]
    sys.stdin.read(1)
    try:
        while s.recv(1 << 20):
            pass
        say("end")
    except OSError as e:
        say(errno.errorcode[e.errno])


def unseen_setuid():
    """Found in libc itself, past the library."""
    ctypes.CDLL("libc.so.6").setuid(NOBODY)


def unseen():
    """The rights go by a way that the library does not see."""
    s = connected()
    say("helpers", len(helpers()))
    unseen_setuid()
    say("rights", status_of("self", "CapEff")[0].strip("0") or "none")
    later = connected()
    say("without rights", echoed(s, 10), echoed(later, 10))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10), echoed(later, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10), echoed(later, 10))


def another_helper():
    """One that is killed is followed by another; meanwhile the process goes without."""
    s = connected()
    found = helpers()
    os.kill(found[0], signal.SIGKILL)
    await_true(lambda: not os.path.exists(f"/proc/{found[0]}") or
               status_of(found[0], "State")[0].startswith("Z"))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    os.waitpid(pid, 0)
    later = connected()
    say("helpers", len([pid for pid in helpers() if pid != found[0]]))
    say("later", echoed(later, 10), echoed(s, 10))


def no_helper_wanted():
    """No interface is taken for a connection to itself."""
    server = socket.create_server(("127.0.0.1", 0))
    s = socket.create_connection(server.getsockname())
    say("helpers", len(helpers()))


def killer():
    """What kills one process, once, by rights that we may have given up by then."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.kill(int(os.read(read_end, 20)), signal.SIGKILL)
        os._exit(0)

    def kill(pid):
        os.write(write_end, b"%d" % pid)
        os.waitpid(child, 0)
        await_true(lambda: not os.path.exists(f"/proc/{pid}") or
                   status_of(pid, "State")[0].startswith("Z"))

    return kill


def killed_helper():
    """Without it what is ours stays ours, and new connections are the kernel's."""
    kill = killer()
    s = connected()
    os.seteuid(NOBODY)
    found = helpers()
    kill(found[0])
    say("older", echoed(s, 200))
    later = connected()
    say("later", echoed(later, 10))
    # what is the kernel's on Linux would go back here, and cannot
    say("asynchronous", refused(lambda: fcntl.ioctl(s, FIOASYNC, struct.pack("i", 1))))
    other = socket.socket()
    try:
        other.bind(s.getsockname())
        say("its port was given up")
    except OSError as e:
        say("its port", errno.errorcode[e.errno])
    # another one is there when the right goes again
    os.seteuid(0)
    os.seteuid(NOBODY)
    say("helpers", len([pid for pid in helpers() if pid != found[0]]))
    again = connected()
    say("again", echoed(again, 10), echoed(s, 10))


def drop_by_capset():
    """All of them, of root that stays root."""
    header = struct.pack("Ii", 0x20080522, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


drops = {"setuid": lambda: os.setuid(NOBODY), "capset": drop_by_capset,
         "number": lambda: ctypes.CDLL(None).syscall(105, NOBODY)}


def talked_by_udp(cnt):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((os.environ.get("OWN", "0.0.0.0"), 0))
    s.connect((peer, port + 1))
    s.settimeout(5)
    good = 0
    for i in range(cnt):
        s.send(b"%d" % i)
        good += s.recv(100) == b"%d" % i
    return good


def rights_first():
    """The rights are gone before the first socket."""
    drops[os.environ["DROP"]]()
    say("rights", status_of("self", "CapEff")[0].strip("0") or "none")
    uses_all()


changes = {"call": os.chroot,
           "number": lambda path: ctypes.CDLL(None).syscall(161, path.encode())}


def root_first():
    """Before the first socket neither files nor rights are left, as with many daemons."""
    peer.encode("idna")  # Python's files, too
    changes[os.environ["CHANGE"]](os.environ["NOTHING"])
    os.chdir("/")
    os.setuid(NOBODY)
    say("files", os.listdir("/"))
    uses_all()


def uses_all():
    say("datagrams", talked_by_udp(400))
    s = connected()
    say("echo", echoed(s, 400))
    server = socket.create_server((os.environ["OWN"], port + 2))
    say("accepted", serve_once(server))
    pid = os.fork()
    if pid == 0:
        say("child", echoed(s, 10))
        os._exit(0)
    say("child ended", os.waitpid(pid, 0)[1])
    say("parent", echoed(s, 10))


def serve_once(server):
    """The mate in the other namespace connects when the listener is ours, as it is from the
    first accept on."""
    first_look(server)
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"connect", (peer, port + 1))
    s = server.accept()[0]
    server.close()
    return answered(s)


def first_look(server):
    server.setblocking(False)
    try:
        server.accept()
    except BlockingIOError:
        server.setblocking(True)


def serves_strangers():
    """Who calls has not been heard of, and the process may not ask for his address."""
    server = socket.create_server((os.environ["OWN"], port + 2))
    drops[os.environ["DROP"]]()
    first_look(server)
    say("listening")
    for _ in range(2):
        say("answered", answered(server.accept()[0]))


def calls():
    """Each time a connection, whose texts are sent back; with the second there are many."""
    for cnt in 1, 400:
        s = socket.create_connection((peer, port + 2), timeout=10)
        for i in range(cnt):
            s.sendall(b"%d" % i)
            s.recv(100)
        s.close()


def sends_on():
    """Without rights, to one who moves to another hardware address and does not say so."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.05)
    drops[os.environ["DROP"]]()
    s.connect((peer, port + 3))

    def heard():
        s.send(b"x")
        try:
            return s.recv(10) == b"x"
        except OSError:
            return False

    say("heard", await_true(heard))
    say("moved", await_true(lambda: os.path.exists(os.environ["MOVED"])))
    say("not heard", heard())
    say("heard again", await_true(heard))
    s.settimeout(10)
    say("goes on", sum(heard() for _ in range(200)))


def sends_back():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((peer, port + 3))
    say("ready")
    while True:
        text, whom = s.recvfrom(100)
        s.sendto(text, whom)


def queue_of_one():
    """Somebody has called, and nobody has accepted, when the helper is killed, or the files of
    the kernel's are out of reach, and then the process forks: who accepts?"""
    kill = killer()
    server = socket.create_server((os.environ["OWN"], port + 2))
    first_look(server)
    say("listening")
    say("queued", bool(select.select([server], [], [], 10)[0]))
    server.settimeout(10)
    if os.environ["WHEN"] == "killed":
        os.setuid(NOBODY)
        kill(helpers()[0])
    else:
        os.chroot(os.environ["NOTHING"])
        os.setuid(NOBODY)
    end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end[1])
        if os.environ["WHEN"] == "killed":
            os.read(end[0], 1)
        else:
            say("child", answered(server.accept()[0]))
        os._exit(0)
    if os.environ["WHEN"] == "killed":
        say("parent", answered(server.accept()[0]))
    os.close(end[1])
    say("ended", os.waitpid(pid, 0)[1])


def calls_once():
    s = socket.create_connection((peer, port + 2), timeout=10)
    for i in range(400):
        s.sendall(b"%d" % i)
        s.recv(100)


def answered(s):
    good = 0
    while True:
        text = s.recv(100)
        if not text:
            return good
        s.sendall(text)
        good += 1


def mate():
    """Echoes datagrams, and connects to rights_first when one says so."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((peer, port + 1))
    say("ready")
    while True:
        text, whence = s.recvfrom(100)
        if text != b"connect":
            s.sendto(text, whence)
        elif os.fork() == 0:
            c = socket.create_connection((os.environ["OWN"], port + 2), timeout=10)
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            echoed(c, 400)
            os._exit(0)


def dropped_and_killed():
    """The helper is killed while an interface is open, and before one is."""
    kill = killer()
    os.setuid(NOBODY)
    if os.environ["WHEN"] == "open":
        say("datagrams", talked_by_udp(10))
    found = helpers()
    kill(found[0])
    say("datagrams", talked_by_udp(400))


# -- children of a process that has given up its rights ----------------------------------------

forks = {"fork": os.fork, "_Fork": ctypes.CDLL(None)._Fork, "vfork": ctypes.CDLL(None).vfork}


def forked(what, how="fork"):
    """Runs that in a child, and says how that has ended."""
    pid = forks[how]()
    if pid:
        return os.waitpid(pid, 0)[1]
    try:
        what()
    except OSError as e:
        say("failed", e)
        os._exit(1)
    os._exit(0)


def forked_later():
    """It takes the interface in its turn."""
    os.setuid(NOBODY)
    forked(lambda: say("child", talked_by_udp(100)))
    say("parent", talked_by_udp(100))


def no_child():
    try:
        return os.waitpid(-1, os.WNOHANG | 0x40000000)  # __WALL
    except ChildProcessError:
        return None


def generations():
    """A connection of the child's goes on in its own child, whichever way that is made."""
    heard = []
    signal.signal(signal.SIGCHLD, lambda *_: heard.append(1))

    def grandchild():
        say("grandchild", echoed(inherited, 10))

    def child():
        nonlocal inherited
        inherited = connected()
        low = sorted(int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) < 1000)
        say("child", echoed(inherited, 400))
        say("ended", forked(grandchild, how), "child", echoed(inherited, 10))
        say("descriptors", sorted(int(fd) for fd in os.listdir("/proc/self/fd")
                                  if int(fd) < 1000) == low,
            "others", no_child(), "signals", len(heard))

    os.setuid(NOBODY)
    how, inherited = os.environ["HOW"], None
    say("ended", forked(child, how), "others", no_child())


def becomes_another():
    """The child's connection is inherited by exec, and sent to another process."""
    def child():
        s = connected()
        say("child", echoed(s, 10))
        pair = socket.socketpair()
        if os.fork() == 0:
            other = socket.socket(fileno=socket.recv_fds(pair[1], 1, 1)[1][0])
            say("receiver", echoed(other, 10))
            os._exit(0)
        handed_on = connected()
        socket.send_fds(pair[0], [b"x"], [handed_on.fileno()])
        os.wait()
        s.set_inheritable(True)
        os.execve(sys.executable, [sys.executable, "-c",
                                   "import socket, sys\n"
                                   f"s = socket.socket(fileno={s.fileno()})\n"
                                   "s.sendall(b'after')\n"
                                   "print('after exec', s.recv(5), flush=True)\n"], {})

    os.setuid(NOBODY)
    say("ended", forked(child))


def ends_with_much():
    """What a child has written before it ends arrives behind its end."""
    def child():
        s = socket.create_connection((peer, port + 3))
        s.sendall(bytes(3000000))
        os._exit(0)

    server = socket.create_server((peer, port + 3)) if os.environ.get("SIDE") == "peer" else None
    if server:
        say("ready")
        s, cnt = server.accept()[0], 0
        while more := len(s.recv(1 << 16)):
            cnt += more
            time.sleep(0.001)
        say("received", cnt)
        return
    os.setuid(NOBODY)
    say("ended", forked(child))


def survivors():
    """The parent ends first; its child closes all that it does not know, and goes on."""
    read_end, write_end = os.pipe()
    os.setuid(NOBODY)
    if os.fork():
        os._exit(0)
    os.close(write_end)
    while os.getppid() != 1:
        time.sleep(0.01)
    os.closerange(3, 70000)
    s = connected()
    say("child", echoed(s, 400))
    say("ended", forked(lambda: say("grandchild", echoed(s, 10))))
    say("child", echoed(s, 10))


def parent_is_killed():
    """The child of a process without rights is told so, and connects its socket again."""
    s = connected()
    os.setuid(NOBODY)
    echoed(s, 10)
    parent, child = os.getpid(), os.fork()
    if child:
        os.waitpid(child, 0)
    os.kill(parent, signal.SIGKILL)
    while os.getppid() == parent:
        time.sleep(0.01)
    say("recv", refused(lambda: s.recv(10)), refused(lambda: s.recv(10)))
    s.connect((peer, port))
    s.sendall(b"echo 0 0\n")
    say("again", echoed(s, 10))


def child_without_helper():
    """The helper is killed: what the child has goes on, and nothing goes back."""
    kill = killer()
    os.setuid(NOBODY)
    of = os.getpid()

    def child():
        s = connected()
        say("child", echoed(s, 10))
        kill(helpers(of)[0])
        say("asynchronous", refused(lambda: fcntl.ioctl(s, FIOASYNC, struct.pack("i", 1))))
        say("child", echoed(s, 200))

    # who kills is a child of the parent
    pid = os.fork()
    if pid == 0:
        os.waitpid = lambda *_: None
        child()
        os._exit(0)
    os.wait()
    os.wait()


def crowd():
    """Many children ask at once, of whom one has the interface."""
    os.setuid(NOBODY)
    of = os.getpid()
    helper = helpers(of)
    gate = os.pipe()
    for _ in range(30):
        if os.fork() == 0:
            os.close(gate[1])
            os.read(gate[0], 1)
            s = connected()
            good = echoed(s, 20)
            good += forked(lambda: os._exit(echoed(s, 10))) >> 8
            os._exit(good)
    os.close(gate[1])
    say("children", sum(os.wait()[1] >> 8 for _ in range(30)))
    say("helpers", len(helper), helpers(of) == helper)


def drops_later():
    """Children give up their rights when their parent has a helper already: one beside the
    parent, one in a namespace of its own, which it has entered unseen."""
    def beside():
        os.setuid(NOBODY)
        say("beside", len(helpers()), len(helpers(of)))

    def elsewhere():
        if ctypes.CDLL("libc.so.6", use_errno=True).unshare(0x40000000) != 0:  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), "unshare")
        os.setuid(NOBODY)
        say("elsewhere", len(helpers()), len(helpers(of)))

    of = os.getpid()
    s = connected()
    say("ended", forked(beside), forked(elsewhere), "echo", echoed(s, 10))


def closes_unseen():
    """The library's own descriptors are closed past it, and their numbers are the program's."""
    libc = ctypes.CDLL("libc.so.6")
    s = connected()
    before = set(os.listdir("/proc/self/fd"))
    os.setuid(NOBODY)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for fd in set(os.listdir("/proc/self/fd")) - before:
        if int(fd) > 1000 and os.path.exists(f"/proc/self/fd/{fd}"):
            libc.dup2(theirs.fileno(), int(fd))
    ours.settimeout(0.5)
    say("asynchronous", refused(lambda: fcntl.ioctl(s, FIOASYNC, struct.pack("i", 1))))
    try:
        say("told", ours.recv(100))
    except TimeoutError:
        say("told nothing")
    say("echo", echoed(s, 10))


def worker():
    """A child that gives them up itself, as a server's worker does."""
    if os.fork() == 0:
        os.setuid(NOBODY)
        say("child", talked_by_udp(400))
        say("helpers", len(helpers()))
        os._exit(0)
    os.wait()
    say("helpers", len(helpers()))


def children_elsewhere():
    """Its children are to be another PID namespace's, of which a helper would be the first."""
    s = connected()
    if ctypes.CDLL("libc.so.6", use_errno=True).unshare(0x20000000) != 0:  # CLONE_NEWPID
        raise OSError(ctypes.get_errno(), "unshare")
    os.setuid(NOBODY)
    say("helpers", len(helpers()))
    say("ended", forked(lambda: say("child", os.getpid())), "echo", echoed(s, 10))


def other_namespace():
    """The helper is of the first one; the second one is entered unseen."""
    libc = ctypes.CDLL("libc.so.6", use_errno=True)
    os.seteuid(NOBODY)
    libc.seteuid(0)
    if libc.unshare(0x40000000) != 0:  # CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "unshare")
    os.system("ip link add v0 type veth peer name v1; ip address add 10.79.0.1/24 dev v0;"
              "ip link set v0 up; ip link set v1 up;"
              "ip neighbour add 10.79.0.2 dev v0 lladdr 2:0:0:0:0:9")
    libc.seteuid(NOBODY)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    say("sent", s.sendto(b"x", ("10.79.0.2", 9)))


REPAIR, XSK, ICMP, PASS, STEER, ATTACH, DROP, HAND_OVER, NEIGHBOUR, JOIN = range(10)


class Helper:
    """vma_way_back with us as its program."""

    def __init__(self):
        self.end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.entry, others_entry = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.program = subprocess.Popen([os.environ["HELPER"]], stdin=other,
                                        stdout=others_entry)
        other.close()
        others_entry.close()
        self.end.settimeout(20)
        self.ready = struct.unpack("i", self.end.recv(100))[0]

    def ask(self, message, fds=(), channel=None):
        """The answer, and how many descriptors came with it: kept in self.fds."""
        channel = channel or self.end
        socket.send_fds(channel, [message], list(fds))
        text, self.fds, _, _ = socket.recv_fds(channel, 100, 20)
        return struct.unpack("i", text)[0], len(self.fds)

    def join(self, kind=socket.SOCK_SEQPACKET):
        """Another channel, with its first word; or what it hears instead."""
        end, other = socket.socketpair(socket.AF_UNIX, kind)
        socket.send_fds(self.entry, [request(JOIN)], [other.fileno()])
        other.close()
        end.settimeout(20)
        return end, end.recv(100)

    def fd_cnt(self):
        return len(os.listdir(f"/proc/{self.program.pid}/fd"))

    def settled(self):
        """How many it has when it waits for the next request."""
        await_true(lambda: status_of(self.program.pid, "State")[0].startswith("S"))
        return self.fd_cnt()

    def has_only(self, cnt):
        """Soon: it answers before it closes what it has given."""
        for _ in range(500):
            if self.fd_cnt() == cnt:
                return True
            time.sleep(0.01)
        return False


def request(op, flags=0, value=0, ifindex=0, sight=0, rules=0, addr=bytes(16)):
    return struct.pack("IIiiII", op, flags, value, ifindex, sight, rules) + addr


def neighbour(name, addr):
    """A request to look for it."""
    if ":" in addr:
        number = socket.inet_pton(socket.AF_INET6, addr)
    else:
        number = bytes(10) + b"\xff\xff" + socket.inet_aton(addr)
    return request(NEIGHBOUR, ifindex=socket.if_nametoindex(name), addr=number)


def kernel_knows(name, addr):
    return subprocess.run(["ip", "neighbour", "show", "to", addr, "dev", name],
                          capture_output=True, text=True, check=True).stdout.split()[:1] == [addr]


def close_all(fds):
    for fd in fds:
        os.close(fd)


def programs_at(ifindex):
    """How many programs see what comes by an interface."""
    query = struct.pack("IIIIQIIQQQQ", ifindex, 46, *[0] * 9)  # BPF_TCX_INGRESS
    room = ctypes.create_string_buffer(query)
    number = {"x86_64": 321, "aarch64": 280, "ppc64le": 361}[os.uname().machine]
    if ctypes.CDLL(None, use_errno=True).syscall(number, 16, room, len(query)):  # BPF_PROG_QUERY
        return errno.errorcode[ctypes.get_errno()]
    return struct.unpack_from("I", room, 24)[0]


def strict():
    """What the helper does for whom, and what not."""
    helper = Helper()
    before = helper.fd_cnt()
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for name, message, fds in (
            ("repair", request(REPAIR, value=1), [tcp.fileno()]),
            ("end of repair", request(REPAIR, value=-1), [tcp.fileno()]),
            ("of no TCP socket", request(REPAIR, value=1), [udp.fileno()]),
            ("of two", request(REPAIR, value=1), [tcp.fileno()] * 2),
            ("of none", request(REPAIR, value=1), []),
            ("another value", request(REPAIR, value=2), [tcp.fileno()]),
            ("AF_XDP", request(XSK), []),
            ("with more", request(XSK, ifindex=1), []),
            ("with a descriptor", request(XSK), [tcp.fileno()]),
            ("with six", request(XSK), [tcp.fileno()] * 6),
            ("too long", request(XSK) + b"\0", []),
            ("too short", request(XSK)[:-1], []),
            ("ICMP", request(ICMP), []),
            ("no such thing", request(10), []),
            ("neighbour", neighbour("v0", "10.78.0.77"), []),
            ("filter", request(DROP), []),
            ("another channel", request(JOIN), [helper.entry.fileno()]),
            ("no interface", request(STEER, rules=4096), []),
            ("no such sight", request(STEER, ifindex=1, sight=9, rules=4096), []),
            ("too many rules", request(STEER, ifindex=1, rules=1 << 30), []),
            ("no such flag", request(STEER, 4, ifindex=1, rules=4096), [])):
        result, cnt = helper.ask(message, fds)
        say(name, errno.errorcode.get(-result, result), cnt)
        close_all(helper.fds)
    say("steering", *helper.ask(request(STEER, ifindex=1, rules=4096)))
    steering = helper.fds
    say("another program", helper.ask(request(PASS))[0])
    say("attached", *helper.ask(request(ATTACH, ifindex=1), helper.fds))
    say("no interface", helper.ask(request(ATTACH, ifindex=1 << 30), steering[:1])[0] < 0)
    say("its own", *helper.ask(request(ATTACH, ifindex=1), steering[:1]))
    close_all(steering)
    say("hand-over", *helper.ask(request(HAND_OVER, ifindex=1)), programs_at(1))
    close_all(helper.fds)
    say("it is gone", await_true(lambda: programs_at(1) == 0))
    for name, message, fds in (("nowhere", request(HAND_OVER), []),
                               ("no interface", request(HAND_OVER, ifindex=1 << 30), []),
                               ("with a program", request(HAND_OVER, ifindex=1), [tcp.fileno()]),
                               ("with flags", request(HAND_OVER, 1, ifindex=1), [])):
        result, cnt = helper.ask(message, fds)
        say(name, errno.errorcode.get(-result, result), cnt)
    say("nothing is left", helper.has_only(before))


def entry():
    """What it takes there, and for whom it goes on."""
    helper = Helper()
    before = helper.fd_cnt()
    channel, word = helper.join()
    say("joined", word == struct.pack("i", helper.ready))
    say("AF_XDP", *helper.ask(request(XSK), channel=channel))
    close_all(helper.fds)
    say("no packets", helper.join(socket.SOCK_STREAM)[1])
    for message, fds in ((request(XSK), []), (request(REPAIR, value=1), [channel.fileno()]),
                         (request(JOIN), []), (request(JOIN), [channel.fileno()] * 2),
                         (request(JOIN), [socket.socket().fileno()]),
                         (request(JOIN), [os.open("/dev/null", os.O_RDWR)]),
                         (request(JOIN, value=1), [channel.fileno()]), (b"x", [])):
        socket.send_fds(helper.entry, [message], fds)
    for addr in "10.78.0.78", "fe80::78":
        helper.entry.send(neighbour("v0", addr))
        say("looked for", await_true(lambda: kernel_knows("v0", addr)))
    say("not looked for", kernel_knows("v0", "10.78.0.77"))
    for _ in range(2000):
        helper.entry.send(request(NEIGHBOUR, ifindex=1 << 30))
    say("goes on", *helper.ask(request(ICMP)), helper.entry in
        select.select([helper.entry], [], [], 0)[0])
    close_all(helper.fds)
    say("keeps its channels", helper.has_only(before + 1))
    # somebody who asks and does not listen
    deaf = helper.join()[0]
    deaf.settimeout(5)
    try:
        while True:
            deaf.send(request(ICMP))
    except OSError as e:
        say("deaf", e.errno in (errno.EPIPE, errno.ECONNRESET))
    say("others", *helper.ask(request(DROP), channel=channel))
    close_all(helper.fds)
    deaf.close()
    say("keeps its channels", helper.has_only(before + 1))
    helper.end.close()
    helper.entry.close()
    say("for the last one", *helper.ask(request(DROP), channel=channel))
    close_all(helper.fds)
    channel.close()
    say("ended", helper.program.wait(10))


def any_request():
    """Whatever comes, it answers, and goes on."""
    seed = int(os.environ.get("SEED") or time.time_ns() % 1000000)
    print("seed", seed, file=sys.stderr)
    chance = random.Random(seed)
    helper = Helper()
    before = helper.settled()
    things = [socket.socket().detach(), os.open("/dev/null", os.O_RDWR), *os.pipe(),
              socket.socket(socket.AF_INET, socket.SOCK_DGRAM).detach()]
    numbers = [0, 0, 0, 0, 1, 1, 2, 3, 4, 4096, 32768, 1 << 31, (1 << 32) - 1]
    for _ in range(3000):
        message = struct.pack("6I", chance.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1 << 31]),
                              *(chance.choice(numbers) for _ in range(5)))
        message += chance.choice([bytes(16), chance.randbytes(16)])
        if chance.random() < 0.1:
            message = chance.randbytes(chance.randrange(1, 60))
        fds = [chance.choice(things) for _ in range(chance.choice([0, 0, 1, 1, 2, 3, 9]))]
        socket.send_fds(helper.entry, [message], fds)
        result, cnt = helper.ask(message, fds)
        # what it has made may serve for the next request
        for fd in helper.fds:
            os.dup2(fd, chance.choice(things))
            os.close(fd)
        if result > 0 or (result and cnt):
            say("answered", result, cnt, message, fds)
    say("goes on", *helper.ask(request(XSK)), helper.program.poll())
    say("nothing is left", helper.has_only(before))


cases = {f.__name__: f for f in (
    rights_first, root_first, serves_strangers, sends_on, sends_back, calls, queue_of_one, calls_once, mate, dropped_and_killed, forked_later, worker,
    children_elsewhere, other_namespace,
    generations, becomes_another, ends_with_much, survivors, parent_is_killed,
    child_without_helper, crowd, drops_later, closes_unseen, strict, entry, any_request,
    goes_on, comes_back, comes_back_with_rights, reaper, goes_unnoticed,
    leaves_its_directory, unseen,
    another_helper, no_helper_wanted, killed_helper, stays, ends_full, reads_late)}
cases[case]()
