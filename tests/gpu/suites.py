#!/usr/bin/env python3
"""suites.py KIT [CUPY_TESTS]: test suites of frameworks on a real GPU, natively twice and once in each mode of support/modes.tsv.

The suites: CuPy's cuda_tests (CUPY_TESTS is the folder `tests` of CuPy's sources, of the version that is installed), numba-cuda's
cudadrv tests, and PyTorch's operators (apps/torch_operators.py). Every test has to end in a mode as it ended in both native runs; a
test that ended differently natively shows nothing. The runs are at the same time, but for those of numba-cuda, of which four are: its
tests of managed memory fill the machine's.
"""
import concurrent.futures
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PYTEST = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-rA", "-p", "no:cacheprovider", "-p", "no:warnings"]
SECONDS = 400


def modes(kit):
    yield "natively", {}
    yield "natively again", {}
    with open(os.path.join(HERE, "..", "support", "modes.tsv")) as lines:
        for line in lines:
            name, _, words = line.rstrip("\n").partition("\t")
            if not line.startswith("#") and words:
                variables = dict(word.split("=", 1) for word in words.replace("{folder}", "/tmp/suites.log").split())
                yield name, {"LD_PRELOAD": os.path.join(os.path.abspath(kit), "libxlog.so"), **variables}


def suites(cupy_tests):
    if cupy_tests:  # test_cufft imports what is not in cuda_tests
        arguments = ["cupy_tests/cuda_tests", "--ignore=cupy_tests/cuda_tests/test_cufft.py", "-m", "not multi_gpu"]
        yield "cupy", PYTEST + arguments, cupy_tests
    yield "numba", [sys.executable, "-m", "numba.runtests", "-v", "--", "numba.cuda.tests.cudadrv"], "/tmp"
    for part in ("1/2", "2/2"):
        yield "torch " + part, [sys.executable, os.path.join(HERE, "apps", "torch_operators.py"), part], "/tmp"


def outcomes(text):
    """How each test ended: the lines of pytest -rA, of unittest -v, and of torch_operators.py."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in ("PASSED", "FAILED", "ERROR", "XFAIL", "XPASS"):
            found[line.partition(" ")[2].partition(" - ")[0]] = words[0]
        elif " ... " in line and words[0].startswith("test_"):
            name, _, ending = line.rpartition(" ... ")
            found[name] = (ending.split() or ["unfinished"])[0]
        elif line.endswith("}") and len(words) > 3:
            found[words[0]] = " ".join(words[1:])
    return found


def run(suite, variables):
    _, command, folder = suite
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS, errors="replace")
        return outcomes(done.stdout)
    except subprocess.TimeoutExpired as late:
        return outcomes((late.stdout or b"").decode(errors="replace"))


def main():
    kit, cupy_tests = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    every, differences = list(modes(kit)), 0
    with concurrent.futures.ThreadPoolExecutor(64) as pool, concurrent.futures.ThreadPoolExecutor(4) as few:
        started = [(suite[0], name, (few if suite[0] == "numba" else pool).submit(run, suite, variables))
                   for suite in suites(cupy_tests) for name, variables in every]
    found = {(suite, mode): each.result() for suite, mode, each in started}
    for suite in dict.fromkeys(suite for suite, _, _ in started):
        first, second = found[suite, "natively"], found[suite, "natively again"]
        same = {test: ending for test, ending in first.items() if second.get(test) == ending}
        print(f"{suite}: {len(same)} of {len(first)} tests ended twice in the same way natively")
        for mode, _ in every[2:]:
            others = {test: found[suite, mode].get(test) for test, ending in same.items() if found[suite, mode].get(test) != ending}
            differences += len(others)
            print(f"  {mode}: {len(others)} differ")
            for test, ending in sorted(others.items())[:20]:
                print(f"    {test}: {same[test]} natively, {ending}")
        if not same:
            differences += 1
    sys.exit(1 if differences else 0)


main()
