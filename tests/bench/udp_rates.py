# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The table of udp_rates.sh, and the same as JSON.
#
# Usage: udp_rates.py RESULTS JSON-FILE
#
# A line of RESULTS is one figure or two: what was measured, by which way, in which
# batch, then the figures, or none if there are none. "end" ends a round. Ratios
# are of the same round; shown are medians and, in brackets, quartiles.
import json
import statistics
import sys

NAMES = {
    "floor": "bare AF_XDP (the floor)",
    "latency-looking": "library, latency profile",
    "latency-waiting": "the same, recv blocks",
    "default-waiting": "library, default profile, recv blocks",
    "kernel-looking": "kernel, spinning",
    "kernel-waiting": "kernel, recv blocks",
}
SOCKPERF = ["ping-pong", "throughput", "under-load", "playback"]

# what, whose, of whose, which figure, at most or at least, how much
BARS = [
    ("the floor counts", ("ping", "floor", 1), ("ping", "kernel-looking", 1),
     "<=", 0.52),
    ("ping-pong, of the floor's", ("ping", "latency-looking", 1),
     ("ping", "floor", 1), "<=", 1.06),
    ("ping-pong, of the kernel's", ("ping", "latency-looking", 1),
     ("ping", "kernel-looking", 1), "<=", 0.6),
    ("one way, of the floor's", ("rate", "latency-looking", 1),
     ("rate", "floor", 1), ">=", 0.85),
    ("one way in 32s, of the floor's", ("rate", "latency-looking", 32),
     ("rate", "floor", 32), ">=", 0.85),
    ("one way in 32s, of the kernel's", ("rate", "latency-looking", 32),
     ("rate", "kernel-looking", 32), ">=", 1.8),
]


def read_rounds(path):
    """Each round is {(what, way, batch): [figure, ...]}."""
    rounds, now = [], {}
    with open(path) as f:
        for line in f:
            words = line.split()
            if words == ["end"]:
                rounds.append(now)
                now = {}
            elif len(words) > 3:
                key = (words[0], words[1], int(words[2]))
                now[key] = [float(word) for word in words[3:]]
            else:
                print("no figure: %s" % line.strip(), file=sys.stderr)
    return rounds


class Summary:
    def __init__(self, values):
        self.cnt = len(values)
        self.median = statistics.median(values) if values else float("nan")
        quartiles = (statistics.quantiles(values, n=4, method="inclusive")
                     if self.cnt > 1 else [self.median] * 3)
        self.low, self.high = quartiles[0], quartiles[2]

    def json(self):
        return {"median": self.median, "q1": self.low, "q3": self.high,
                "rounds": self.cnt}


def figures(rounds, key, index=0):
    return Summary([r[key][index] for r in rounds if len(r.get(key, ())) > index])


def ratios(rounds, above, below):
    return Summary([r[above][0] / r[below][0] for r in rounds
                    if above in r and below in r and r[below][0]])


def row(name, *columns):
    print("%-40s" % name + "".join("%26s" % column for column in columns))


def spread(summary, scale, digits):
    return "%s [%s .. %s]" % tuple(
        "%.*f" % (digits, value / scale)
        for value in (summary.median, summary.low, summary.high))


def print_ping(rounds, out):
    row("there and back, half of it", "median, us", "99.9th percentile, us")
    for way, name in NAMES.items():
        key = ("ping", way, 1)
        median, tail = figures(rounds, key), figures(rounds, key, 1)
        if not median.cnt:
            continue
        row(name, spread(median, 1000, 2), spread(tail, 1000, 0))
        out["ping_ns"][way] = median.json()
        out["ping_tail_ns"][way] = tail.json()


def print_rates(rounds, out):
    row("one way, thousands per second", "one by one", "32 at a time")
    for way in ("floor", "latency-looking", "kernel-looking"):
        one, many = (figures(rounds, ("rate", way, n)) for n in (1, 32))
        if not one.cnt and not many.cnt:
            continue
        row(NAMES[way], spread(one, 1000, 0), spread(many, 1000, 0))
        out["rate"][way] = {"1": one.json(), "32": many.json()}


def print_sockperf(rounds, out):
    row("sockperf", "kernel", "library")
    for mode in SOCKPERF:
        names = (["thousands sent per second"] if mode == "throughput" else
                 ["median, us", "99.9th percentile, us"])
        for index, name in enumerate(names):
            kernel, library = (
                figures(rounds, ("sockperf-" + mode, way, 1), index)
                for way in ("kernel", "latency"))
            if not kernel.cnt and not library.cnt:
                continue
            digits = 2 if name == "median, us" else 0
            row("%s, %s" % (mode, name), spread(kernel, 1000, digits),
                spread(library, 1000, digits))
            out["sockperf"]["%s, %s" % (mode, name)] = {
                "kernel": kernel.json(), "library": library.json()}


def print_bars(rounds, out):
    row("ratio", "median", "bar", "")
    for name, above, below, sign, bar in BARS:
        summary = ratios(rounds, above, below)
        if not summary.cnt:
            continue
        is_met = (summary.median <= bar if sign == "<="
                  else summary.median >= bar)
        row(name, spread(summary, 1, 2), "%s %.2f" % (sign, bar),
            "met" if is_met else "NOT MET")
        out["bars"][name] = dict(summary.json(), bar=bar, sign=sign,
                                 is_met=is_met)


def main(results, json_file):
    rounds = read_rounds(results)
    out = {"ping_ns": {}, "ping_tail_ns": {}, "rate": {}, "sockperf": {},
           "bars": {}}
    for table in (print_ping, print_rates, print_sockperf, print_bars):
        table(rounds, out)
        print()
    with open(json_file, "w") as f:
        json.dump(out, f, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
