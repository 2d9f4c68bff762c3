# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The table of ready_rates.sh, and the same as JSON.
#
# Usage: ready_rates.py RESULTS JSON-FILE
#
# RESULTS as in udp_rates.py, whose figures and ratios these are.
import importlib.util
import json
import os
import sys

spec = importlib.util.spec_from_file_location(
    "udp_rates", os.path.join(os.path.dirname(__file__), "udp_rates.py"))
rates = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rates)

WAYS = ["block", "epoll", "poll", "select"]

# what, how it is called, whose two, scale, digits
ROWS = [("ping-" + way, "ping-pong by %s, half of it, us" % way, "spinning",
         1000, 2) for way in WAYS] + [
    ("pair", "two threads on a processor, round trip, us", "spinning", 1000, 2),
    ("hear", "from send to the return of epoll_wait, us", "sleeping", 1000, 2),
    ("crowd", "of 64 threads in a set, returns per event", "sleeping", 1, 3),
    ("idle", "1,000 sockets, 10 s of sleep, ms", "sleeping", 1, 3),
    ("idle", "the same as by default", "spinning", 1, 3),
]

# what, of what, at most
BARS = [
    ("epoll, of a blocking receive", ("ping-epoll", "spinning", 1),
     ("ping-block", "spinning", 1), 1.15),
    ("poll, of a blocking receive", ("ping-poll", "spinning", 1),
     ("ping-block", "spinning", 1), 1.25),
    ("select, of a blocking receive", ("ping-select", "spinning", 1),
     ("ping-block", "spinning", 1), 1.25),
    ("wake-up, of the kernel's", ("hear", "sleeping", 1),
     ("hear", "kernel", 1), 1.1),
]
LIMITS = [
    ("threads woken by an event", ("crowd", "sleeping", 1), 1.02),
    ("processor time of a sleeper, ms", ("idle", "sleeping", 1), 1.0),
]


PAIR, PAIR_BAR = ("pair", "spinning", 1), 200.0


def bar(out, name, summary, limit):
    is_met = summary.median <= limit
    rates.row(name, rates.spread(summary, 1, 3), "<= %.2f" % limit,
              "met" if is_met else "NOT MET")
    out["bars"][name] = dict(summary.json(), bar=limit, is_met=is_met)


def main(results, json_file):
    rounds = rates.read_rounds(results)
    out = {"figures": {}, "bars": {}}
    rates.row("", "library", "kernel")
    for what, name, variant, scale, digits in ROWS:
        library, kernel = (rates.figures(rounds, (what, whose, 1))
                           for whose in (variant, "kernel"))
        rates.row(name, rates.spread(library, scale, digits),
                  rates.spread(kernel, scale, digits))
        out["figures"][name] = {"library": library.json(),
                                "kernel": kernel.json()}
    switches = [rates.figures(rounds, ("crowd", whose, 1), 1)
                for whose in ("sleeping", "kernel")]
    rates.row("the same, sleeps per event",
              *(rates.spread(summary, 1, 3) for summary in switches))
    for what, variant in (("pair", "spinning"), ("hear", "sleeping")):
        tails = [rates.figures(rounds, (what, whose, 1), 1)
                 for whose in (variant, "kernel")]
        rates.row("slowest of a thousand, us, %s" % what,
                  *(rates.spread(summary, 1000, 0) for summary in tails))
    print()
    rates.row("ratio or figure", "median", "bar", "")
    for name, above, below, limit in BARS:
        bar(out, name, rates.ratios(rounds, above, below), limit)
    tails = [r[PAIR][1] / 1000 for r in rounds if len(r.get(PAIR, ())) > 1]
    bar(out, "slowest of a thousand, two threads, us", rates.Summary(tails),
        PAIR_BAR)
    for name, key, limit in LIMITS:
        bar(out, name, rates.figures(rounds, key), limit)
    with open(json_file, "w") as f:
        json.dump(out, f, indent=1)


main(*sys.argv[1:])
