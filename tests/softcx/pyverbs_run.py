# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
One module of rdma-core's own Python tests on the card; see pyverbs.sh.

    pyverbs_run.py FOLDER MODULE PASSING [without=TEST]...

Succeeds if at least PASSING tests pass, the others are skipped (for what the card does not
have), and none fails.
"""
import random
import sys
import unittest

# Some draw a length, of which a few leave no room for what they draw next.
random.seed(1)

folder, module, passing = sys.argv[1:4]
without = [a.split('=')[1] for a in sys.argv[4:]]

sys.path[:0] = [folder, folder + '/tests']
sys.argv[1:] = ['--dev', 'mlx5_0']
from args_parser import parser  # noqa: E402
parser.parse_args()


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        elif test.id().split('.')[-1] not in without:
            yield test


class Result(unittest.TestResult):
    """Says what became of each test."""
    passed = 0
    bad = False

    def addSuccess(self, test):
        self.passed += 1
        print('# passed', test.id())

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print('# skipped', test.id(), reason)

    def problem(self, test, err):
        self.bad = True
        print('# failed', test.id(), err[1])

    addError = addFailure = problem


loaded = unittest.defaultTestLoader.loadTestsFromName('tests.' + module)
result = Result()
unittest.TestSuite(tests_of(loaded)).run(result)
print('#', module, result.passed, 'passed,', len(result.skipped), 'skipped')
sys.stdout.flush()
sys.exit(result.bad or result.passed < int(passing))
