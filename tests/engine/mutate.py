#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plants one fault after the other in src/tcp and runs the engine's tests.

Each line of mutations.txt is `name | file | text | text instead`; the text must
occur exactly once, line breaks aside; a | is written \\|. A fault is caught when a test
program fails, crashes or does not end. Survivors are listed, and make the run fail.
`mutate.py NAME...` runs only those, `mutate.py --places` only looks for the texts;
PROGRAMS in the environment names the tests that are run. Compiles by itself (CC,
default gcc); needs no configured tree.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src/base", "src/pkt", "src/event", "src/tcp", "tests/support")
UNUSED = ("log.c", "lock.c", "region.c", "fuzz_main.c", "fd_services.c")
MAKE = (ROOT / "tests/engine/local.mk").read_text()


def shared():
    """What all programs of the engine are linked with, as make knows it."""
    sources = re.search(r"^%C%_libsim_a_SOURCES = ((?:.*\\\n)*.*)$", MAKE, re.M)
    return re.findall(r"%D%/(\w+)\.c\b", sources[1])


def all_programs():
    """The engine's programs as make knows them, those last that take long."""
    names = [n for n in re.findall(r"^engine_programs \+= %D%/(\w+)$", MAKE, re.M)
             if f"%C%_{n}_LDADD = $(engine_test_libs)\n" in MAKE]
    slow = ["scripts", "recovery", "transfer", "misbehave", "random"]
    return [n for n in names if n not in slow] + slow


SHARED = shared()
PROGRAMS = os.environ.get("PROGRAMS", "").split() or all_programs()
# of tests/unit/tcp: pure parts, which notice first
UNITS = ("tcp_bbr", "tcp_cc_bbr", "tcp_hystart")
# those that include their source
WITH_SOURCE = ("tcp_cc_bbr",)
SEEDS = os.environ.get("SIM_SEEDS", "200")
TIMEOUT_S = 120


def compile_file(source, work):
    target = work / (str(source).replace("/", "_") + ".o")
    command = [os.environ.get("CC", "gcc"), "-std=gnu11", "-O1",
               "-DVMA_DEBUG=1", "-D_GNU_SOURCE", "-w",
               "-I", work / "src", "-I", work, "-c", work / source,
               "-o", target]
    subprocess.run(command, check=True)
    return target


def build_all(work):
    for folder in FOLDERS + ("tests/engine", "tests/unit/tcp"):
        shutil.copytree(ROOT / folder, work / folder)
    # the links of the simulator, alone of their folder
    (work / "src/dev/fake").mkdir(parents=True)
    for name in ("impair.c", "impair.h"):
        shutil.copy(ROOT / "src/dev/fake" / name, work / "src/dev/fake")
    # the engine's counters are lines of the library's list
    (work / "src/stats").mkdir(parents=True)
    shutil.copy(ROOT / "src/stats/counters.def", work / "src/stats")
    (work / "config.h").write_text("")
    objects = {}
    for folder in FOLDERS:
        for path in sorted((work / folder).glob("*.c")):
            source = path.relative_to(work)
            if source.name not in UNUSED:
                objects[str(source)] = compile_file(source, work)
    objects["impair.c"] = compile_file("src/dev/fake/impair.c", work)
    for name in (*SHARED, *PROGRAMS):
        source = f"tests/engine/{name}.c"
        objects[source] = compile_file(source, work)
    for name in UNITS:
        source = f"tests/unit/tcp/{name}.c"
        objects[source] = compile_file(source, work)
    return objects


def recompile(name, objects, work):
    """The source, or all that may include the header or list."""
    for source in objects:
        if source in (f"src/tcp/{name}", f"tests/unit/tcp/{name}") or (name.endswith((".h", ".def")) and
                                           source.startswith("src/tcp/")):
            compile_file(pathlib.Path(source), work)


def is_caught(objects, work):
    """The name of the program that noticed, or None."""
    shared = [o for s, o in objects.items()
              if not s.startswith(("tests/engine", "tests/unit"))]
    shared += [objects[f"tests/engine/{name}.c"] for name in SHARED]
    sources = [f"tests/unit/tcp/{name}.c" for name in UNITS]
    sources += [f"tests/engine/{name}.c" for name in PROGRAMS]
    for source in sources:
        name = pathlib.Path(source).stem
        program = work / name
        others = [o for o in shared if name not in WITH_SOURCE or
                  o != objects[f"src/tcp/{name}.c"]]
        subprocess.run([os.environ.get("CC", "gcc"), "-o", program,
                        objects[source], *others], check=True)
        try:
            done = subprocess.run([program], timeout=TIMEOUT_S,
                                  env={**os.environ, "SIM_SEEDS": SEEDS,
                                       "srcdir": str(ROOT)},
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return f"{name} (no end)"
        if done.returncode:
            return name
    return None


def parse(line):
    return [part.strip().replace("\0", "|")
            for part in line.replace("\\|", "\0").split(" | ")]


def places_of(old, text):
    return list(re.finditer(r"\s+".join(map(re.escape, old.split())), text))


def has_its_place(line):
    name, source, old, _ = parse(line)
    cnt = len(places_of(old, (ROOT / "src/tcp" / source).read_text()))
    if cnt != 1:
        print(f"{name}: the text occurs {cnt} times in {source}")
    return cnt == 1


def plant(line, objects, work):
    name, source, old, new = parse(line)
    path = work / "src/tcp" / source
    text = path.read_text()
    found = places_of(old, text)
    if len(found) != 1:
        print(f"not ok - {name} # the text occurs {len(found)} times")
        return False
    try:
        path.write_text(text[:found[0].start()] + new + text[found[0].end():])
        recompile(source, objects, work)
        caught = is_caught(objects, work)
    except subprocess.CalledProcessError:
        print(f"not ok - {name} # does not build")
        return False
    finally:
        path.write_text(text)
        recompile(source, objects, work)
    print(f"{'ok' if caught else 'not ok'} - {name}"
          f" # {caught or 'SURVIVED'}", flush=True)
    return caught is not None


def main():
    lines = (ROOT / "tests/engine/mutations.txt").read_text().splitlines()
    lines = [l for l in lines if l.strip() and not l.startswith("#")]
    if sys.argv[1:] == ["--places"]:
        sys.exit(not all([has_its_place(line) for line in lines]))
    if len(sys.argv) > 1:
        lines = [l for l in lines if l.split(" | ")[0].strip() in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        objects = build_all(work)
        failed = is_caught(objects, work)
        if failed:
            sys.exit(f"{failed} fails without any fault")
        caught = sum(plant(line, objects, work) for line in lines)
    print(f"{caught} of {len(lines)} caught")
    sys.exit(caught != len(lines))


main()
