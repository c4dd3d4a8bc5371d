#!/usr/bin/env python3
"""Plants violations of each rule of scripts/tidy.py in a scratch tree and expects them to be found;
wraps comments with scripts/wrap.py."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts"))
sys.dont_write_bytecode = True
import tidy  # noqa: E402
import wrap  # noqa: E402

HEADER = "/* Owns: nothing. Thread: any. Errors: none. */\n"
TARGET = "tests/fuzz/x_fuzz.c"

# (what is planted, path, text, rule number that must be found; None = must pass)
ROWS = (
    ("core includes io", "src/core/a.c", '#include "io/loop.h"\n', 1),
    ("core includes an adapter", "src/core/a.c", '#include "adapters/sqs/sqs_sender.h"\n', 1),
    ("base includes domain", "src/base/a.c", '#include "domain/token.h"\n', 1),
    ("io includes ports", "src/io/a.c", '#include "ports/outbox.h"\n', 1),
    ("adapter includes a sibling", "src/adapters/mqtt/a.c", '#include "adapters/http/b.h"\n', 1),
    ("adapter includes core", "src/adapters/mqtt/a.c", '#include "core/route.h"\n', 1),
    ("include without its folder", "src/core/a.c", '#include "route.h"\n', 1),
    ("unknown layer", "src/stuff/a.c", "", 1),
    ("adapter includes aws", "src/adapters/sqs/a.c", '#include "adapters/aws/sigv4.h"\n', None),
    ("adapter includes itself", "src/adapters/mqtt/a.c", '#include "adapters/mqtt/b.h"\n', None),
    ("app includes core", "src/app/a.c", '#include "core/route.h"\n', None),
    ("core includes ports", "src/core/a.c", '#include "ports/outbox.h"\n', None),
    ("test includes support", "src/core/a_test.c", '#include "support/oom.h"\n', None),
    ("include in a comment", "src/core/a.c", '/*\n#include "io/loop.h"\n*/\n', None),
    ("libuv in core", "src/core/a.c", "#include <uv.h>\n", 2),
    ("curl in domain", "src/domain/a.c", "#include <curl/curl.h>\n", 2),
    ("time.h in ports", "src/ports/a.h", HEADER + "#include <time.h>\n", 2),
    ("sys in base", "src/base/a.c", "#include <sys/types.h>\n", 2),
    ("OpenSSL in core", "src/core/a.c", "#include <openssl/sha.h>\n", 2),
    ("yaml in app", "src/app/a.c", "#include <yaml.h>\n", 2),
    ("OpenSSL in digest", "src/base/digest.c", "#include <openssl/sha.h>\n", None),
    ("libuv in io", "src/io/a.c", "#include <uv.h>\n", None),
    ("libuv with a reason", "src/core/a.c", "#include <uv.h> /* gb-exception: why not */\n", None),
    ("libuv without a reason", "src/core/a.c", "#include <uv.h> /* gb-exception: */\n", 2),
    ("long source", "src/core/a.c", "\n" * 801, 3),
    ("longest source", "src/core/a.c", "\n" * 800, None),
    ("long header", "src/core/a.h", HEADER + "\n" * 250, 3),
    ("long test", "src/core/a_test.c", "\n" * 1001, 3),
    ("longest test", "src/core/a_test.c", "\n" * 1000, None),
    ("util file", "src/core/string_util.c", "", 5),
    ("common folder", "tests/common/a.c", "", 5),
    ("four variants", "src/io/a.c", "#ifdef A\n#endif\n" * 4, 6),
    ("three variants", "src/io/a.c", "#ifdef A\n#endif\n" * 3, None),
    ("typedef struct", "src/core/a.c", "typedef struct gb_a gb_a;\n", 8),
    ("struct with _t", "src/core/a.c", "struct gb_a_t;\n", 8),
    ("function type", "src/core/a.c", "typedef void gb_done_fn(void *arg);\n", None),
    ("header without contract", "src/core/a.h", "struct gb_a;\n", 11),
    ("header without Errors", "src/core/a.h", "/* Owns: x. Thread: y. */\n", 11),
    ("contract outside a comment", "src/core/a.h", "Owns: Thread: Errors:\n", 11),
    ("pure header", "src/core/a.h", "/* Pure: a function of its arguments. */\n", None),
    ("second writer", "src/core/a.c", "void gb_a(struct a *a)\n{\n    a->state = 1;\n}\n", 23),
    ("second writer in mqtt", "src/adapters/mqtt/a.c", "static int f(void)\n{\n    a.b[0].state = 1;\n}\n", 23),
    ("the writer", "src/core/a.c", "static void set_state(int n)\n{\n    a->state = n;\n}\n", None),
    ("a named writer", "src/core/a.c",
     "static void lease_set_state(struct a *a,\n                            int n)\n{\n    a->state = n;\n}\n", None),
    ("comparison", "src/core/a.c", "int f(void)\n{\n    return a->state == 1;\n}\n", None),
    ("initialiser", "src/core/a.c", "int f(void)\n{\n    *a = (struct a){.state = 1};\n}\n", None),
    ("codec without target", "src/domain/x_json.h", HEADER, 29),
    ("decoder without header", "src/adapters/mqtt/mqtt_decode_ack.c", "", 29),
    ("clock in core", "src/core/a.c", "int f(void)\n{\n    return time(NULL);\n}\n", 32),
    ("output in domain", "src/domain/a.c", 'void f(void)\n{\n    printf("x");\n}\n', 32),
    ("environment in api", "src/api/a.c", 'void f(void)\n{\n    getenv("x");\n}\n', 32),
    ("sleep in a test", "src/core/a_test.c", "void f(void)\n{\n    usleep(1);\n}\n", 32),
    ("snprintf", "src/core/a.c", "void f(void)\n{\n    snprintf(a, 1, b);\n}\n", None),
    ("member of that name", "src/core/a.c", "void f(void)\n{\n    c->ops->time(c);\n}\n", None),
    ("call in a string", "src/core/a.c", 'const char *a = "exit(1)";\n', None),
    ("call in a comment", "src/core/a.c", "/* no exit(1) */\n", None),
    ("call with a reason above", "src/core/a.c", "/* gb-exception: a reason,\n * long. */\nint a = time(NULL);\n", None),
    ("reason too far above", "src/core/a.c", "/* gb-exception: reason */\n\nint a = time(NULL);\n", 32),
    ("print in a test", "src/core/a_test.c", 'void f(void)\n{\n    printf("x");\n}\n', None),
    ("todo", "src/core/a.c", "/* TODO: later */\n", 38),
    ("todo with number", "src/core/a.c", "/* TODO #12: later */\n", None),
    ("if 0", "src/core/a.c", "#if 0\n#endif\n", 38),
    ("dead call", "src/core/a.c", "void f(void)\n{\n    /* gb_a(b, c); */\n}\n", 38),
    ("dead assignment", "src/core/a.c", "void f(void)\n{\n    // a->b = 2;\n}\n", 38),
    ("prose", "src/core/a.c", "void f(void)\n{\n    /* It ends here; the caller frees it. */\n}\n", None),
    ("macro returns", "src/core/a.c", "#define A(x)  \\\n    if (x) \\\n        return\n", 38),
    ("wide comment", "src/core/a.c", "/* " + "a" * 98 + "\n */\n", 39),
    ("widest comment", "src/core/a.c", "/* " + "\u00a7" * 97 + "\n */\n", None),
    ("macro value", "src/core/a.c", "#define A(x) ((x) + 1)\nint f(void)\n{\n    return A(1);\n}\n", None),
)


def findings_of(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return tidy.check(root)


class TidyTest(unittest.TestCase):
    def test_rows(self):
        for what, path, text, rule in ROWS:
            with self.subTest(what):
                found = findings_of({path: text})
                if rule is None:
                    self.assertEqual(found, [])
                else:
                    self.assertEqual(len(found), 1, found)
                    self.assertRegex(found[0], rf"^{path}:\d+: rule {rule}: \S")

    def test_every_rule_has_a_planted_violation(self):
        planted = {rule for _, _, _, rule in ROWS}
        for rule in tidy.RULES:
            self.assertIn(int(rule.__doc__.split(":")[0]), planted, rule.__name__)

    def test_line_numbers(self):
        found = findings_of({"src/core/a.c": "/*\n\n*/\nint a;\nint b = time(NULL);\n"})
        self.assertTrue(found[0].startswith("src/core/a.c:5: "), found)

    def test_codecs_with_targets(self):
        codec = {"src/domain/x_json.h": HEADER, "src/domain/x_json.c": ""}
        self.assertEqual(findings_of({**codec, TARGET: '#include "domain/x_json.h"\n'}), [])
        self.assertEqual(findings_of({"src/domain/y_decode.c": "", TARGET: "/* Covers: y_decode */\n"}), [])
        self.assertEqual(len(findings_of({**codec, TARGET: '#include "domain/xx_json.h"\n'})), 1)


class WrapTest(unittest.TestCase):
    def test_contract_keeps_its_hanging_indent(self):
        words = " ".join(["word"] * 20)
        self.assertEqual(wrap.wrap([f"/* Owns:   {words}", " *         and more.", " * Thread: any. */"]),
                         ["/* Owns:   " + " ".join(["word"] * 18),
                          " *         word word and more.",
                          " * Thread: any. */"])

    def test_comment_behind_code_moves_above(self):
        comment = "/* " + "x" * 80 + " */"
        self.assertEqual(wrap.wrap([f"    int a_number_of_things; {comment}"]),
                         [f"    {comment}", "    int a_number_of_things;"])

    def test_end_stays_with_its_last_word(self):
        self.assertEqual(wrap.wrap(["/* " + "x" * 90 + " yyyyyy */"]), ["/* " + "x" * 90, " * yyyyyy */"])

    def test_short_lines_and_long_code_stay(self):
        lines = ["/* short */", "int f(" + "int a, " * 20 + "int b);", "/* " + "x" * 120 + " */"]
        self.assertEqual(wrap.wrap(lines), lines)


if __name__ == "__main__":
    unittest.main()
