# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Python's own servers and clients, for tcp_programs.sh. Who asks prints what is the same
# each time.
#
#   tcp_programs.py serve ADDRESS PORT      lines come back in capitals, by asyncio
#   tcp_programs.py ask ADDRESS PORT CNT    so many connections at once
#   tcp_programs.py fetch URL CNT           by urllib, four at a time
#   tcp_programs.py session URL CNT         by requests, each thing so often
#   tcp_programs.py bytes FILE              in which directions iperf3 has received some
import asyncio
import concurrent.futures
import hashlib
import json
import sys
import urllib.request


async def answer(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def serve(address, port):
    server = await asyncio.start_server(answer, address, port, limit=1 << 22,
                                        backlog=512)
    async with server:
        await server.serve_forever()


async def converse(address, port, number):
    reader, writer = await asyncio.open_connection(address, port, limit=1 << 22)
    good = 0
    for length in (1, 100, 10000, 500000):
        line = f"{number}".encode() + b"x" * length + b"\n"
        writer.write(line)
        await writer.drain()
        good += await reader.readline() == line.upper()
    writer.write_eof()
    good += await reader.read() == b""
    writer.close()
    return good


async def ask(address, port, cnt):
    results = await asyncio.gather(*(converse(address, port, i) for i in range(cnt)))
    print(sum(results), "of", 5 * cnt)


def fetch(url, cnt):
    def one(_):
        with urllib.request.urlopen(url, timeout=20) as answer:
            return hashlib.md5(answer.read()).hexdigest()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(sorted(set(pool.map(one, range(cnt)))), cnt)


def converse_by_requests(url, cnt):
    import requests
    sums = set()
    with requests.Session() as session:
        for _ in range(cnt):
            answer = session.get(url + "/index.html", timeout=20)
            sums.add((answer.status_code, hashlib.md5(answer.content).hexdigest()))
            with session.get(url + "/big", stream=True, timeout=20) as answer:
                total = hashlib.md5()
                for piece in answer.iter_content(70000):
                    total.update(piece)
                sums.add((answer.status_code, total.hexdigest()))
            # nginx refuses it, once all of it has come
            answer = session.post(url + "/index.html", timeout=20,
                                  data=iter([b"x" * 10000] * 50))
            sums.add(answer.status_code)
    print(sorted(map(str, sums)))


def check_bytes(path):
    report = json.load(open(path))
    if "error" in report:
        print(report["error"])
        return
    end = report["end"]
    for name in sorted(key for key in end if key.startswith("sum_received")):
        print(name, end[name]["bytes"] > 0)


what, *rest = sys.argv[1:]
if what == "serve":
    asyncio.run(serve(rest[0], int(rest[1])))
elif what == "ask":
    asyncio.run(ask(rest[0], int(rest[1]), int(rest[2])))
elif what == "fetch":
    fetch(rest[0], int(rest[1]))
elif what == "session":
    converse_by_requests(rest[0], int(rest[1]))
elif what == "bytes":
    check_bytes(rest[0])
