# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients and small servers of several processes, for tcp_servers.sh. Who asks prints what
is the same each time.

    tcp_servers.py load URL CNT               so many requests by four threads, each on a
                                              connection of its own
    tcp_servers.py until FILE URL             the same until there is the file
    tcp_servers.py fastcgi ADDRESS PORT CNT   requests of a FastCGI responder
    tcp_servers.py lines ADDRESS PORT CNT     connections that send a line, and read to
                                              the end
    tcp_servers.py count ADDRESS PORT CNT     streams of numbers, which are read to the end
    tcp_servers.py ftp ADDRESS PORT FILE CNT  uploads and downloads
    tcp_servers.py serve KIND ADDRESS PORT    KIND: pool, passing, double_fork, activated
                                              (listens as fd 3), or writer
"""
import concurrent.futures
import ftplib
import hashlib
import http.client
import io
import multiprocessing
import os
import signal
import socket
import struct
import sys
import threading
import urllib.parse


# -- clients -----------------------------------------------------------------------------

def all_of(function, cnt):
    """What the calls say, which is how they failed or `good`, and how often."""
    said = {}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for what in pool.map(function, range(cnt)):
            said[what] = said.get(what, 0) + 1
    return sorted(said.items())


def fetch(where):
    """A request: what came back, or how it failed."""
    try:
        connection = http.client.HTTPConnection(where.hostname, where.port or 80, timeout=20)
        connection.request("GET", where.path or "/")
        answer = connection.getresponse()
        said = f"{answer.status} {hashlib.md5(answer.read()).hexdigest()[:8]}"
        connection.close()
        return said
    except Exception as e:
        return repr(e)


def load(url, cnt):
    where = urllib.parse.urlparse(url)
    print(all_of(lambda _: fetch(where), int(cnt)))


def until(path, url):
    where = urllib.parse.urlparse(url)
    lock, said = threading.Lock(), {}

    def work():
        while not os.path.exists(path) or sum(said.values()) < 20:
            what = fetch(where)
            with lock:
                said[what] = said.get(what, 0) + 1
    workers = [threading.Thread(target=work) for _ in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    print(sorted(said))
    print(sum(said.values()), "requests", said, file=sys.stderr)


def record(kind, content):
    return struct.pack("!BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def fastcgi(address, port, cnt):
    params = b""
    for name, value in ((b"SCRIPT_FILENAME", b"/status"), (b"SCRIPT_NAME", b"/ping"),
                        (b"REQUEST_METHOD", b"GET")):
        params += bytes((len(name), len(value))) + name + value

    def one(_):
        try:
            with socket.create_connection((address, int(port)), timeout=20) as s:
                s.sendall(record(1, struct.pack("!HB5x", 1, 0)) + record(4, params) +
                          record(4, b"") + record(5, b""))
                text = b""
                while more := s.recv(65536):
                    text += more
                return "good" if b"pong" in text else repr(text)
        except Exception as e:
            return repr(e)
    print(all_of(one, int(cnt)))


def lines(address, port, cnt):
    def one(i):
        try:
            with socket.create_connection((address, int(port)), timeout=20) as s:
                s.sendall(b"line %d\n" % i)
                s.shutdown(socket.SHUT_WR)
                text = b""
                while more := s.recv(65536):
                    text += more
                return "good" if text == b"LINE %d\n" % i else repr(text)
        except Exception as e:
            return repr(e)
    print(all_of(one, int(cnt)))


def count(address, port, cnt):
    """Whole numbers up to an end that the server says in the last line."""
    def one(_):
        try:
            with socket.create_connection((address, int(port)), timeout=20) as s:
                text = s.makefile("rb").read().split(b"\n")
        except Exception as e:
            return repr(e)
        numbers = text[:-2]
        if text[-2:] != [b"%d written" % len(numbers), b""]:
            return "ends with %r after %d" % (text[-2:], len(numbers))
        return "good" if numbers == [b"%d" % i for i in range(len(numbers))] else "gap"
    print(all_of(one, int(cnt)))


def ftp(address, port, path, cnt):
    with open(path, "rb") as file:
        content = file.read()

    def one(i):
        try:
            with ftplib.FTP(timeout=20) as f:
                f.connect(address, int(port))
                f.login("anonymous", "a@b")
                f.set_pasv(i % 2 == 0)
                back = io.BytesIO()
                f.retrbinary(f"RETR {os.path.basename(path)}", back.write)
                names = f.nlst()
                f.quit()
            return "good" if back.getvalue() == content and names else "other"
        except Exception as e:
            return repr(e)
    print(all_of(one, int(cnt)))


# -- servers of several processes ----------------------------------------------------------

def answer(connection):
    with connection, connection.makefile("rwb") as stream:
        for line in stream:
            stream.write(line.upper())
            stream.flush()


def serve_from(server):
    while True:
        answer(server.accept()[0])


def serve_pool(server):
    """Children that accept from the listener of their parent."""
    children = [multiprocessing.Process(target=serve_from, args=(server,), daemon=True)
                for _ in range(3)]
    for c in children:
        c.start()
    for c in children:
        c.join()


def serve_one(connection):
    answer(connection)


def serve_passing(server):
    """Connections go to workers that were there before, by SCM_RIGHTS."""
    with multiprocessing.Pool(3) as pool:
        while True:
            connection = server.accept()[0]
            pool.apply_async(serve_one, (connection,))
            # the peer hears of the end when nobody has it
            del connection


def serve_double_fork(server):
    """Each connection by a grandchild whose parent has ended; the first closes it later."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        connection = server.accept()[0]
        pid = os.fork()
        if pid == 0:
            if os.fork():
                os._exit(0)
            os.setsid()
            server.close()
            answer(connection)
            os._exit(0)
        os.waitpid(pid, 0)
        connection.close()


def write_on(connection, stop):
    """Numbers until the end, which the last line names."""
    n = 0
    while not stop.is_set():
        text = b"".join(b"%d\n" % i for i in range(n, n + 1000))
        connection.sendall(text)
        if not n:
            # in one piece, since others do the same
            os.write(1, b"writing\n")
        n += 1000
    connection.sendall(b"%d written\n" % n)


def serve_writer(server):
    """Ends by a signal, in the middle of what it writes; what is written it says."""
    stop, threads, connections = threading.Event(), [], []
    def end(number, _):
        stop.set()
        for t in threads:
            t.join()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    while True:
        connection = server.accept()[0]
        t = threading.Thread(target=write_on, args=(connection, stop), daemon=True)
        # before it starts: the signal may come as soon as it has said that it writes
        threads.append(t)
        connections.append(connection)
        t.start()


def waited():
    """The listener is the standard input (inetd, wait). One connection, and it ends."""
    server = socket.socket(fileno=0)
    answer(server.accept()[0])


def serve(kind, address, port):
    if kind == "activated":
        server = socket.socket(fileno=3)
        print(os.environ.get("LISTEN_FDS"), os.environ.get("LISTEN_PID") == str(os.getpid()),
              flush=True)
        serve_from(server)
        return
    server = socket.create_server((address, int(port)), backlog=256)
    globals()["serve_" + kind](server)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
