#!/usr/bin/env python3
"""differential.py KIT [--only NAMES] [--modes MODES] LIST...: programs that were not written for this library, natively and under it.

A LIST has a line a program, separated by tabs: name, GPUs that it needs, words (`alone`: nothing beside it; `more`: in the
further modes too), command ({kit}, {here}, {samples} are folders). Each is run natively twice, and once in each mode; exit
status and output must be those of the native runs. Lines that tell times, and lines that the two native runs do not have in
common, are compared without their numbers. A program that fails natively shows nothing: it is skipped. Differences that must be stand in expected-differences.tsv. At the end: how much
longer the modes took, over all programs. --only: those whose name matches the regular expression; --modes: all in these modes
alone, likewise.
"""
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {
    "nothing": {},
    "log": {"XLOG_LOG": None},
    "budget": {"XLOG_BUDGET": "100%", "XLOG_HOST_BUDGET": "4T"},
    "async": {"XLOG_BACKEND": "async", "XLOG_ASYNC_ALWAYS": "1"},
    "async+ordered": {"XLOG_BACKEND": "async", "XLOG_ASYNC_ALWAYS": "1", "XLOG_ASYNC_FREE": "ordered"},
    "cache": {"XLOG_BACKEND": "cache"},
    "canary": {"XLOG_GUARD": "canary"},
    "fence": {"XLOG_GUARD": "fence"},
}
MORE = {
    "log+budget": {"XLOG_LOG": None, "XLOG_BUDGET": "100%", "XLOG_HOST_BUDGET": "4T"},
    "direct+log": {"XLOG_LOG": None, "XLOG_BACKEND": "direct"},
    "async+budget": {"XLOG_BACKEND": "async", "XLOG_ASYNC_ALWAYS": "1", "XLOG_BUDGET": "100%"},
    "cache+ordered+log": {"XLOG_LOG": None, "XLOG_BACKEND": "cache", "XLOG_ASYNC_FREE": "ordered"},
    "canary+launch": {"XLOG_GUARD": "canary", "XLOG_GUARD_CHECK": "launch"},
    "canary+quarantine": {"XLOG_GUARD": "canary", "XLOG_QUARANTINE": "64M"},
    "canary+async+log": {"XLOG_LOG": None, "XLOG_GUARD": "canary", "XLOG_BACKEND": "async", "XLOG_ASYNC_ALWAYS": "1"},
}
FINDING = re.compile(r"^xlog: guard: (fault|overflow|use-after-free|double-free|interior-free): .*", re.M)
TIMES = re.compile(r"(?i)time|msec|\bms\b|\bsec|/s\b|flop|bandwidth|throughput|elapsed")
NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")


def read_table(path, columns):
    with open(path) as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines if line.strip() and not line.startswith("#")]
    return [row + [""] * (columns - len(row)) for row in rows]


def run(command, folder, extra):
    environment = dict(os.environ, **extra)
    start = time.monotonic()
    try:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, timeout=120)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), time.monotonic() - start
    except subprocess.TimeoutExpired:
        return -1, "", "timed out", time.monotonic() - start


def comparable(native, other, text):
    """Lines, those without their numbers in which the native runs differ."""
    first, second, mine = native.splitlines(), other.splitlines(), text.splitlines()
    if len(first) != len(second):
        return None
    if len(mine) != len(first):
        return mine, first
    shared = [a == b and not TIMES.search(a) for a, b in zip(first, second)]
    bare = lambda lines: [line if same else " ".join(NUMBER.sub("#", line).split()) for line, same in zip(lines, shared)]
    return bare(mine), bare(first)


def check(kit, folder, name, words, command, expected, where, wanted):
    results, seconds = [], collections.defaultdict(float)
    native = [run(command, folder, where) for _ in range(2)]
    native_time = min(each[3] for each in native)
    if native[0][0] != 0:
        said = native[0][2].splitlines()[-1:] or native[0][1].splitlines()[-1:]
        return None, seconds, "exit %d%s" % (native[0][0], ", " + said[0] if said else "")
    modes = dict(MODES, **MORE) if "more" in words or wanted else MODES
    for mode, settings in modes.items():
        if wanted and not re.fullmatch(wanted, mode):
            continue
        reasons = [row for row in expected if row[0] == name and mode.startswith(row[1])]
        if any(row[2] == "." for row in reasons):
            continue
        extra = dict(where, **settings, LD_PRELOAD=os.path.join(kit, "libxlog.so"))
        log = os.path.join(folder, "log." + mode + "/")
        if "XLOG_LOG" in extra:
            extra["XLOG_LOG"] = log
        status, out, err, took = run(command, folder, extra)
        seconds[mode], seconds[mode + " native"] = took, native_time
        problem = ""
        drop = lambda text: "\n".join(l for l in text.splitlines() if not any(re.search(row[2], l) for row in reasons))
        lines = comparable(drop(native[0][1]), drop(native[1][1]), drop(out))
        if status not in (native[0][0], native[1][0]):
            problem = "exit %d and %d" % (native[0][0], status)
        elif lines is not None and lines[0] != lines[1]:
            differing = [(a, b) for a, b in zip(*lines) if a != b] or [("%d lines" % len(lines[0]), "%d lines" % len(lines[1]))]
            problem = "output: %r, natively %r" % differing[0]
        elif unexpected := [f.group(0) for f in FINDING.finditer(err) if not any(re.search(row[2], f.group(0)) for row in reasons)]:
            problem = unexpected[0]
        elif os.path.isdir(log):
            verify = subprocess.run([os.path.join(kit, "xlog"), "report", "--verify", log], capture_output=True)
            problem = "" if verify.returncode == 0 else "its log: " + verify.stdout.decode().splitlines()[-1]
        note = " (exit status only)" if lines is None else ""
        detail = "" if not problem else "\n          " + "\n          ".join(err.splitlines()[-3:])
        results.append((not problem, "%s, %s%s%s%s" % (name, mode, note, ": " + problem if problem else "", detail)))
    return results, seconds, ""


def main():
    kit = os.path.abspath(sys.argv[1])
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True).stdout.splitlines())
    expected = read_table(os.path.join(HERE, "expected-differences.tsv"), 4)
    folders = {"kit": kit, "here": HERE, "samples": os.path.join(kit, "samples")}
    lists, only, wanted = sys.argv[2:], "", ""
    if lists[:1] == ["--only"]:
        only, lists = lists[1], lists[2:]
    if lists[:1] == ["--modes"]:
        wanted, lists = lists[1], lists[2:]
    programs = [row for path in lists for row in read_table(path, 4) if re.fullmatch(only or ".*", row[0])]
    passed = failed = skipped = 0
    times = collections.defaultdict(float)
    ran = []
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(min(16, (os.cpu_count() or 2) // 2)) as pool:
        def start(row, gpu):
            folder = os.path.join(work, row[0])
            os.makedirs(folder)
            where = {} if row[1] != "1" or gpus == 0 else {"CUDA_VISIBLE_DEVICES": str(gpu % gpus)}
            return row, check(kit, folder, row[0], row[2].split(), row[3].format(**folders), expected, where, wanted)

        def tell(row, outcome):
            nonlocal passed, failed, skipped
            results, seconds, native_failure = outcome
            if results is None:
                print("  skipped %s: fails natively (%s)" % (row[0], native_failure), flush=True)
                skipped += 1
                return
            ran.append(row[0])
            wrong = [text for good, text in results if not good]
            passed += len(results) - len(wrong)
            failed += len(wrong)
            ratios = " ".join("%s %.2f" % (m, seconds[m] / seconds[m + " native"]) for m in dict(MODES, **MORE) if m in seconds)
            print("  %s %s (times: %s)" % ("FAILED " if wrong else "ok     ", row[0], ratios), flush=True)
            for text in wrong:
                print("          " + text, flush=True)
            for key, value in seconds.items():
                times[key] += value

        possible = []
        for row in programs:
            program = next((word for word in row[3].format(**folders).split() if word.startswith("/")), "")
            enough = int(row[1]) <= gpus
            if enough and (not program or os.path.exists(program)):
                possible.append(row)
            else:
                print("  skipped %s: %s" % (row[0], "not there" if enough else "needs %s GPUs" % row[1]))
                skipped += 1
        together = [pool.submit(start, row, i) for i, row in enumerate(possible) if "alone" not in row[2].split()]
        for future in concurrent.futures.as_completed(together):
            tell(*future.result())
        for row in possible:
            if "alone" in row[2].split():
                tell(*start(row, 0))
    print("  all together, of the native time: " + ", ".join("%s %.3f" % (m, times[m] / times[m + " native"]) for m in dict(MODES, **MORE) if times[m]))
    print("%d programs; %d passed, %d failed, %d skipped" % (len(ran), passed, failed, skipped))
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
