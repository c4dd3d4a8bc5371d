#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "blueprint/bootstrap.h"
#include "blueprint/document.h"
#include "blueprint/rule_rows.h"

/* Every row of tests/rules: a document, changed in one place, and all that must be said about it,
 * to the letter. Each rule has a row, and each refusal names its value and a remedy.
 *
 *     == name, with the check of the specification
 *     in standalone.yaml              the base below tests/fuzz/corpus/blueprint; `in
 *     standalone.yaml,
 *                                     supported` asks gb_blueprint_supported too; `in yaml`, `in
 *                                     json`: the `+` lines are the whole document
 *     under ha.json                   the deployment's bootstrap, below tests/fuzz/corpus/bootstrap
 *       line                          the change, as in a unified diff: lines that stay,
 *     - line                          that go
 *     + line                          and that come
 *     > doc:1:2: error: ... [V1]      what is said, in order; nothing when there is no such line
 *     value text                      part of the line above, the offending value; `value (absent)`
 *                                     when nothing is written, `value (secret) text` when it must
 *                                     not appear
 *     remedy text                     part of the line above
 */

enum { SAID_MAX = 16 };

struct said {
    const char *line, *value, *remedy;
};
struct row {
    const char *file, *name;
    const char *base; /* NULL: `replace` is the whole document */
    enum gb_blueprint_format format;
    bool supported;
    const char *under; /* NULL: none */
    struct gb_str find, replace;
    struct said said[SAID_MAX];
    size_t count;
};
struct coverage {
    size_t rows;
    bool rule[GB_RULE_COUNT];
};

static void release(struct row *row)
{
    gb_str_deinit(&row->find);
    gb_str_deinit(&row->replace);
}

static char *document_of(struct row *row)
{
    gb_str_append_c(&row->find, "");
    gb_str_append_c(&row->replace, "");
    if (row->base == NULL) return gb_strdup(row->replace.data);
    char path[256];
    (void)snprintf(path, sizeof path, DOCUMENTS "%s", row->base);
    char *base = read_document(path);
    struct rule_row patch = {row->name, row->find.data, row->replace.data, NULL};
    char *text = patched(base, &patch);
    if (strstr(strstr(base, row->find.data) + 1, row->find.data) != NULL) {
        fail_msg("%s: %s: the changed lines are there twice", row->file, row->name);
    }
    free(base);
    return text;
}

/* Value and remedy of a refusal. */
static void check_words(const struct row *row, const struct said *said, const char *line)
{
    static const char secret[] = "(secret) ";
    if (strstr(line, ": error: ") == NULL) return;
    if (said->value == NULL || said->remedy == NULL) {
        fail_msg("%s: %s: name value and remedy of\n%s", row->file, row->name, line);
        return;
    }
    if (strstr(line, said->remedy) == NULL) {
        fail_msg("%s: %s: no remedy \"%s\" in\n%s", row->file, row->name, said->remedy, line);
    }
    if (strncmp(said->value, secret, sizeof secret - 1) == 0) {
        if (strstr(line, said->value + sizeof secret - 1) == NULL) return;
        fail_msg("%s: %s: a secret in\n%s", row->file, row->name, line);
    }
    if (strcmp(said->value, "(absent)") != 0 && strstr(line, said->value) == NULL) {
        fail_msg("%s: %s: no value \"%s\" in\n%s", row->file, row->name, said->value, line);
    }
}

static void compare(struct coverage *coverage, const struct row *row,
                    const struct gb_findings *findings)
{
    static const char *const names[] = {"doc"};
    struct gb_str all = {0};
    bool same = findings->count == row->count;
    for (size_t i = 0; i < findings->count; i++) {
        struct gb_str line = {0};
        gb_finding_print(&findings->items[i], names, &line);
        same = same && strcmp(line.data, row->said[i].line) == 0;
        gb_str_appendf(&all, "> %s\n", line.data);
        if (same) {
            check_words(row, &row->said[i], line.data);
            coverage->rule[findings->items[i].rule] = true;
        }
        gb_str_deinit(&line);
    }
    if (!same) fail_msg("%s: %s: said\n%s", row->file, row->name, all.size == 0 ? "" : all.data);
    gb_str_deinit(&all);
}

static struct gb_err admit(const struct row *row, const struct gb_blueprint *b,
                           struct gb_findings *findings)
{
    char path[256];
    struct gb_bootstrap *boot = NULL;
    (void)snprintf(path, sizeof path, "tests/fuzz/corpus/bootstrap/%s", row->under);
    char *text = read_document(path);
    struct gb_err err = gb_bootstrap_read(gb_bytes_c(text), NULL, &boot);
    free(text);
    if (gb_failed(err)) fail_msg("%s: %s", path, err.message);
    err = gb_bootstrap_admit(boot, b, findings);
    gb_bootstrap_free(boot);
    return err;
}

static void check(struct coverage *coverage, struct row *row)
{
    char *text = document_of(row);
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_blueprint_load(gb_bytes_c(text), "doc", row->format, &findings, &b);
    assert_int_equal(b == NULL, gb_failed(err));
    if (row->supported && b != NULL) err = gb_blueprint_supported(b, &findings);
    if (row->under != NULL && b != NULL) err = admit(row, b, &findings);
    assert_int_equal(gb_failed(err), findings.error_count > 0);
    compare(coverage, row, &findings);
    coverage->rows++;
    gb_blueprint_free(b);
    gb_findings_deinit(&findings);
    free(text);
    release(row);
}

/* `in standalone.yaml, supported` */
static void take_base(struct row *row, char *text)
{
    char *comma = strstr(text, ", supported");
    row->supported = comma != NULL;
    if (comma != NULL) *comma = '\0';
    bool json = strcmp(text, "json") == 0;
    row->base = json || strcmp(text, "yaml") == 0 ? NULL : text;
    row->format = json ? GB_BLUEPRINT_JSON : GB_BLUEPRINT_YAML;
}

static void take_line(struct row *row, char *line)
{
    struct said *last = row->count == 0 ? NULL : &row->said[row->count - 1];
    if (strncmp(line, "in ", 3) == 0) {
        take_base(row, line + 3);
    } else if (strncmp(line, "under ", 6) == 0) {
        row->under = line + 6;
    } else if (line[0] == ' ' || line[0] == '-' || line[0] == '+') {
        const char *text = line[1] == '\0' ? line + 1 : line + 2;
        if (line[0] != '+') gb_str_appendf(&row->find, "%s\n", text);
        if (line[0] != '-') gb_str_appendf(&row->replace, "%s\n", text);
    } else if (strncmp(line, "> ", 2) == 0) {
        assert_true(row->count < SAID_MAX);
        row->said[row->count++] = (struct said){.line = line + 2};
    } else if (strncmp(line, "value ", 6) == 0 && last != NULL) {
        last->value = line + 6;
    } else if (strncmp(line, "remedy ", 7) == 0 && last != NULL) {
        last->remedy = line + 7;
    } else {
        fail_msg("%s: %s: what is \"%s\"?", row->file, row->name, line);
    }
}

static void check_file(struct coverage *coverage, const char *path)
{
    char *text = read_document(path);
    struct row row = {0};
    for (char *line = text; *line != '\0';) {
        char *end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        if (strncmp(line, "== ", 3) == 0) {
            if (row.name != NULL) check(coverage, &row);
            row = (struct row){.file = path, .name = line + 3};
        } else if (line[0] != '\0' && line[0] != '#') {
            take_line(&row, line);
        }
        line = end + 1;
    }
    check(coverage, &row);
    free(text);
}

static const char *const files[] = {
    "document",  "values",     "bridge",   "http",      "stores",    "sessions",
    "receivers", "senders",    "bindings", "routes",    "resolvers", "drain",
    "direct",    "processors", "cluster",  "supported", "lease",     "profile",
};

static void every_row(void **state)
{
    struct coverage *coverage = *state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "tests/rules/%s.rules", files[i]);
        check_file(coverage, path);
    }
}

#define MATCH                                                                                      \
    "bridge: {id: a}\n"                                                                            \
    "receivers: [{id: i, transport: sqs, options: {queue_name: q}}]\n"                             \
    "senders: [{id: o, transport: sqs, options: {queue_name: p}}]\n"                               \
    "bindings: [{id: b, sender_id: o, address: p}]\n"                                              \
    "routes: [{id: r, receiver_id: i, bindings: [b], policy: {allow_unfenced: true, on_expired: "  \
    "drop, on_permanent_failure: drop}, resolver: {type: rules, rules: [{binding_id: b, match: "   \
    "[{field: k, operator: regex, value: \""
#define X60 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* What no text file holds. */
static const struct made_row {
    const char *name;
    enum gb_rule rule;
    enum gb_blueprint_format format;
    const char *start, *repeated;
    size_t times;
    const char *end, *want; /* NULL: nothing */
} made_rows[] = {
    {"01 check 13, 4 MiB", GB_RULE_NONE, GB_BLUEPRINT_YAML, "bridge: {id: a}\n#", "x",
     GB_DOCUMENT_SIZE_MAX - 18, "\n", NULL},
    {"01 check 13, one byte more", GB_RULE_D1, GB_BLUEPRINT_YAML, "bridge: {id: a}\n#", "x",
     GB_DOCUMENT_SIZE_MAX - 17, "\n",
     "doc: error: the document has 4194305 bytes, and at most 4194304 (4 MiB) are accepted; "
     "shorten "
     "it [D1]\n"},
    {"01 check 13, 4 MiB of JSON", GB_RULE_NONE, GB_BLUEPRINT_JSON, "{\"bridge\":{\"id\":\"a\"}}",
     " ", GB_DOCUMENT_SIZE_MAX - 21, "", NULL},
    {"01 check 13, one byte more of JSON", GB_RULE_D1, GB_BLUEPRINT_JSON,
     "{\"bridge\":{\"id\":\"a\"}}", " ", GB_DOCUMENT_SIZE_MAX - 20, "",
     "doc: error: the document has 4194305 bytes, and at most 4194304 (4 MiB) are accepted; "
     "shorten "
     "it [D1]\n"},
    {"01 check 26, 4096 characters", GB_RULE_NONE, GB_BLUEPRINT_YAML, MATCH, "\xC3\xA4", 4096,
     "\"}]}]}}]\n", NULL},
    {"01 check 26, 4097 characters", GB_RULE_V7, GB_BLUEPRINT_YAML, MATCH, "x", 4097, "\"}]}]}}]\n",
     "doc:5:218: error: routes[0] (r): resolver.rules[0].match[0].value \"" X60
     "\" is no usable regular expression: it has 4097 characters, and at most 4096 are accepted; "
     "correct or shorten it [V7]\n"},
    {"not UTF-8", GB_RULE_D2, GB_BLUEPRINT_YAML, "bridge:\n  id: ", "\xFF", 1, "\n",
     "doc:2:7: error: byte 0xFF is not UTF-8 here; save the document in that encoding [D2]\n"},
    {"deep", GB_RULE_D4, GB_BLUEPRINT_YAML, "", "[", 101, "",
     "doc:1:101: error: the document is nested deeper than 100 levels here; flatten it [D4]\n"},
};

static void made_rows_too(void **state)
{
    struct coverage *coverage = *state;
    static const char *const names[] = {"doc"};
    for (size_t i = 0; i < sizeof made_rows / sizeof made_rows[0]; i++) {
        const struct made_row *row = &made_rows[i];
        struct gb_str text = {0};
        struct gb_str said = {0};
        struct gb_findings findings = {0};
        struct gb_blueprint *b = NULL;
        gb_str_append_c(&text, row->start);
        for (size_t j = 0; j < row->times; j++) gb_str_append_c(&text, row->repeated);
        gb_str_append_c(&text, row->end);
        (void)gb_blueprint_load(gb_str_bytes(&text), "doc", row->format, &findings, &b);
        gb_findings_print(&findings, names, &said);
        gb_str_append_c(&said, "");
        if (strcmp(said.data, row->want == NULL ? "" : row->want) != 0) {
            fail_msg("%s: said\n%s", row->name, said.data);
        }
        if (findings.count > 0) assert_int_equal(findings.items[0].rule, row->rule);
        coverage->rule[row->rule] = true;
        gb_blueprint_free(b);
        gb_findings_deinit(&findings);
        gb_str_deinit(&said);
        gb_str_deinit(&text);
    }
}

static void every_rule_has_a_row(void **state)
{
    const struct coverage *coverage = *state;
    for (int i = GB_RULE_NONE + 1; i < GB_RULE_COUNT; i++) {
        if (coverage->rule[i]) continue;
        fail_msg("%s has no row: %s", gb_rule_name((enum gb_rule)i), gb_rule_asks((enum gb_rule)i));
    }
    assert_true(coverage->rows > 250);
}

int main(void)
{
    struct coverage coverage = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(every_row, &coverage),
        cmocka_unit_test_prestate(made_rows_too, &coverage),
        cmocka_unit_test_prestate(every_rule_has_a_row, &coverage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
