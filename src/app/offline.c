#include "app/offline.h"

#include <stdio.h>

#include "app/document.h"
#include "blueprint/identity.h"
#include "blueprint/inspect.h"
#include "io/file.h"

static int complain(const char *path, struct gb_err err)
{
    (void)fprintf(stderr, "%s: error: %s\n", path, err.message);
    return 1;
}

/* NULL after saying why; findings are printed where they are found. */
static struct gb_blueprint *load(const struct gb_options *o, const char *path)
{
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_document_load(o, path, GB_DOCUMENT_VALIDATE, &b);
    if (!gb_failed(err)) return b;
    if (err.code != GB_INVALID_CONFIG) (void)complain(path, err);
    return NULL;
}

static bool print(struct gb_bytes text)
{
    bool ok = fwrite(text.data, 1, text.size, stdout) == text.size && fflush(stdout) == 0;
    if (!ok) (void)fputs("gobridge: error: the answer could not be written to stdout\n", stderr);
    return ok;
}

static int print_hash(const struct gb_options *o,
                      struct gb_err (*hash)(const struct gb_blueprint *b, char out[GB_SHA256_HEX]))
{
    char line[GB_SHA256_HEX + 1];
    const char *path = o->files[0];
    struct gb_blueprint *b = load(o, path);
    if (b == NULL) return 1;
    struct gb_err err = hash(b, line);
    gb_blueprint_free(b);
    if (gb_failed(err)) return complain(path, err);
    line[GB_SHA256_HEX - 1] = '\n';
    return print(gb_bytes(line, GB_SHA256_HEX)) ? 0 : 1;
}

int gb_offline_digest(const struct gb_options *o)
{
    return print_hash(o, gb_blueprint_digest);
}

int gb_offline_fingerprint(const struct gb_options *o)
{
    return print_hash(o, gb_blueprint_fingerprint);
}

static int print_inspection(const struct gb_document *d, struct gb_findings *findings)
{
    struct gb_blueprint *b = NULL;
    struct gb_str text = {0};
    int code = 1;
    struct gb_err err = gb_findings_check(findings); /* of reading */
    if (!gb_failed(err)) err = gb_blueprint_load_layers(&d->input, findings, &b);
    if (err.code == GB_INVALID_CONFIG) err = gb_ok(); /* that is told */
    if (!gb_failed(err)) {
        struct gb_inspection of = {d->layers[0].bytes, findings, d->names, b};
        err = gb_inspect(&of, &text);
    }
    if (gb_failed(err)) {
        (void)complain(d->layers[0].name, err);
    } else if (print(gb_str_bytes(&text)) && b != NULL) {
        code = 0;
    }
    gb_str_deinit(&text);
    gb_blueprint_free(b);
    return code;
}

int gb_offline_inspect(const struct gb_options *o)
{
    struct gb_document d = {0};
    struct gb_findings findings = {0};
    struct gb_err err = gb_document_read(&d, o, o->files[0], &findings);
    int code = gb_failed(err) ? complain(o->files[0], err) : print_inspection(&d, &findings);
    gb_findings_deinit(&findings);
    gb_document_forget(&d);
    return code;
}

static int print_diff(const char *path, const struct gb_blueprint *before,
                      const struct gb_blueprint *after)
{
    struct gb_diff diff = {0};
    struct gb_str text = {0};
    int code = 1;
    struct gb_err err = gb_diff_init(&diff, before, after);
    if (!gb_failed(err)) err = gb_diff_print(&diff, &text);
    if (gb_failed(err)) {
        (void)complain(path, err);
    } else if (print(gb_str_bytes(&text)) && diff.equal) {
        code = 0;
    }
    gb_str_deinit(&text);
    gb_diff_deinit(&diff);
    return code;
}

int gb_offline_diff(const struct gb_options *o)
{
    struct gb_blueprint *before = load(o, o->files[0]);
    struct gb_blueprint *after = load(o, o->files[1]);
    int code = 1;
    if (before != NULL && after != NULL) code = print_diff(o->files[1], before, after);
    gb_blueprint_free(before);
    gb_blueprint_free(after);
    return code;
}
