#!/usr/bin/env python3
"""Which mutants scripts/mutate.py makes of a line of C."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
sys.dont_write_bytecode = True
import mutate  # noqa: E402

ROWS = (
    ("a bound", "if (a < 5) f();", ["if (a <= 5) f();", "if (a < 6) f();", "if (a < 4) f();"]),
    ("logic", "return a && !b;", ["return a || !b;", "return a && b;"]),
    ("equality", "x = a != NULL;", ["x = a == NULL;"]),
    ("a condition", "if (f(a)) g();", ["if (!(f(a))) g();"]),
    ("plus one", "x = n + 1;", ["x = n ;"]),
    ("minus one is a number", "x = -1;", ["x = -2;", "x = -0;"]),
    ("a fraction", "x = 1.5;", ["x = 1.5100;", "x = 1.4900;"]),
    ("hexadecimal", "x = 0x10;", ["x = 0x11;", "x = 0xf;"]),
    ("a loop", "for (i = 0; i < n; i++) f();",
     ["for (i = 1; i < n; i++) f();", "for (i = 0; i + 1 < n; i++) f();"]),
    ("comments, texts, includes", '#include <a.h>\n/* a < 5 */ f("a < 5"); // 5', []),
    ("assertions", "GB_ASSERT(a < 5);", []),
    ("an arrow and a shift", "a->b = c << d;", []),
    ("buffers", "char a[24]; char b[A_MAX + 64]; char c[2 * A_MAX];", []),
    ("an element", "x = a[1];", ["x = a[2];", "x = a[0];"]),
    ("a size", "x = sizeof a / sizeof a[0];", []),
    ("an empty struct", "struct a b = {0};", []),
    ("display", "enum { SHOWN_MAX = 60, REAL_MAX = 9 };",
     ["enum { SHOWN_MAX = 60, REAL_MAX = 10 };", "enum { SHOWN_MAX = 60, REAL_MAX = 8 };"]),
)


class Mutants(unittest.TestCase):
    def test_rows(self):
        for name, line, want in ROWS:
            with self.subTest(name):
                self.assertEqual(sorted(m.apply() for m in mutate.mutants_in("x.c", line)), sorted(want))


if __name__ == "__main__":
    unittest.main()
