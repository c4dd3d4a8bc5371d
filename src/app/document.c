#include "app/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/process.h"
#include "app/source.h"
#include "base/digest.h"
#include "io/file.h"

_Static_assert((int)GB_OPTIONS_OVERLAYS_MAX + 1 == (int)GB_BLUEPRINT_LAYERS_MAX, "and the base");
_Static_assert((int)GB_OPTIONS_SETS_MAX == (int)GB_BLUEPRINT_OVERRIDES_MAX, "each is applied");

/* The `at`th of those written; one that can't be read is left out of the layers. */
static struct gb_err read_layer(struct gb_document *d, const char *path, size_t at)
{
    size_t i = d->input.layer_count;
    struct gb_err err = gb_ok();
    if (d->given == NULL) {
        err = gb_file_read_wait(path, GB_BLUEPRINT_SIZE_MAX, GB_DOCUMENT_WAIT_MS, &d->texts[i]);
    } else if (d->given->too_large[at]) {
        err.code = GB_PAYLOAD_TOO_LARGE;
    }
    if (err.code == GB_PAYLOAD_TOO_LARGE) {
        err = gb_err(err.code, "%s: a document has at most %d bytes (4 MiB); shorten it [%s]", path,
                     GB_BLUEPRINT_SIZE_MAX, gb_rule_name(GB_RULE_D1));
    }
    d->layers[i] = (struct gb_blueprint_layer){
        .name = path,
        .bytes = d->given == NULL ? gb_str_bytes(&d->texts[i]) : d->given->layers[at],
        .format = gb_blueprint_format_of(path)};
    d->input.layer_count++;
    return err;
}

static struct gb_err add_override(struct gb_document *d, const char *set)
{
    enum { PATH_SHOWN_MAX = 100 };
    size_t i = d->input.override_count;
    const char *equals = gb_options_set_equals(set);
    int size = (int)(equals - set);
    d->set_paths[i] = gb_asprintf("%.*s", size, set);
    d->set_names[i] =
        gb_asprintf("-set %zu (%.*s)", i + 1, size > PATH_SHOWN_MAX ? PATH_SHOWN_MAX : size, set);
    d->input.override_count++;
    if (d->set_paths[i] == NULL || d->set_names[i] == NULL) return gb_err_no_memory("-set");
    d->overrides[i] =
        (struct gb_blueprint_override){d->set_names[i], d->set_paths[i], gb_bytes_c(equals + 1)};
    return gb_ok();
}

struct gb_err gb_document_read(struct gb_document *d, const struct gb_options *o, const char *path,
                               struct gb_findings *findings)
{
    d->input = (struct gb_blueprint_input){.layers = d->layers, .overrides = d->overrides};
    struct gb_err err = read_layer(d, path, 0);
    for (size_t i = 0; !gb_failed(err) && i < o->overlay_count; i++) {
        struct gb_err missing = read_layer(d, o->overlays[i], i + 1);
        if (gb_failed(missing)) {
            gb_findings_add(findings, GB_FINDING_ERROR,
                            (struct gb_finding_at){.layer = (uint32_t)i + 1}, "%s",
                            missing.message);
        }
    }
    for (size_t i = 0; !gb_failed(err) && i < o->set_count; i++) err = add_override(d, o->sets[i]);
    if (!gb_failed(err)) gb_blueprint_names(&d->input, d->names);
    return err;
}

void gb_document_forget(struct gb_document *d)
{
    for (size_t i = 0; i < d->input.layer_count; i++) {
        if (d->texts[i].data != NULL) gb_wipe(d->texts[i].data, d->texts[i].size);
        gb_str_deinit(&d->texts[i]);
    }
    for (size_t i = 0; i < d->input.override_count; i++) {
        free(d->set_names[i]);
        free(d->set_paths[i]);
    }
    memset(d, 0, sizeof *d);
}

void gb_document_print_findings(const struct gb_findings *findings, const struct gb_document *d)
{
    struct gb_str text = {0};
    gb_findings_print(findings, d->names, &text);
    if (text.size > 0) (void)fwrite(text.data, 1, text.size, stderr);
    gb_str_deinit(&text);
}

/* As a block between the lines of the log (spec 01 §5.1). */
static void print_refused_start(const struct gb_findings *findings, const struct gb_document *d)
{
    struct gb_str text = {0};
    gb_findings_print(findings, d->names, &text);
    (void)fputs("config validation failed:\n", stderr);
    for (const char *line = text.data; line != NULL && *line != '\0';) {
        int size = (int)strcspn(line, "\n");
        (void)fprintf(stderr, "  %.*s\n", size, line);
        line += line[size] == '\n' ? size + 1 : size;
    }
    gb_str_deinit(&text);
}

static struct gb_err check(const struct gb_document *d, enum gb_document_use use,
                           const struct gb_bootstrap *boot, struct gb_findings *findings,
                           struct gb_blueprint **out)
{
    struct gb_err err = gb_findings_check(findings);
    if (!gb_failed(err)) err = gb_blueprint_load_layers(&d->input, findings, out);
    if (!gb_failed(err) && boot != NULL) err = gb_bootstrap_admit(boot, *out, findings);
    if (!gb_failed(err) && use == GB_DOCUMENT_RUN) err = gb_blueprint_supported(*out, findings);
    if (!findings->failed && use == GB_DOCUMENT_RUN && findings->error_count > 0) {
        print_refused_start(findings, d);
    } else if (!findings->failed) {
        gb_document_print_findings(findings, d);
    }
    if (!gb_failed(err) && use == GB_DOCUMENT_VALIDATE_STRICT && findings->warning_count > 0)
        err = gb_err(GB_INVALID_CONFIG, "%zu warnings under -strict", findings->warning_count);
    return err;
}

static void take_digest(const struct gb_document *d, char out[GB_SHA256_HEX])
{
    struct gb_bytes layers[GB_BLUEPRINT_LAYERS_MAX];
    for (size_t i = 0; i < d->input.layer_count; i++) layers[i] = d->layers[i].bytes;
    gb_source_digest(layers, d->input.layer_count, out);
}

/* Of one that is to run; all zero for another. */
struct deployed {
    const struct gb_bootstrap *boot;
    const struct gb_source_texts *texts;
    char *digest;
};

static struct gb_err load(const struct gb_options *o, const char *path, enum gb_document_use use,
                          const struct deployed *as, struct gb_blueprint **out)
{
    struct gb_document d = {.given = as->texts};
    struct gb_findings findings = {0};
    struct gb_blueprint *blueprint = NULL;
    struct gb_err err = gb_document_read(&d, o, path, &findings);
    if (as->texts != NULL) {
        memcpy(as->digest, as->texts->digest, GB_SHA256_HEX);
    } else if (as->digest != NULL) {
        as->digest[0] = '\0';
        if (!gb_failed(err)) take_digest(&d, as->digest);
    }
    if (use == GB_DOCUMENT_RUN) { /* a verdict is on the document alone (spec 08 §2) */
        d.input.env = (struct gb_blueprint_env){
            .instance_id = gb_env("GOBRIDGE_INSTANCE_ID"),
            .admin_api_key = gb_env("GOBRIDGE_ADMIN_API_KEY"),
            .monitor_api_key = gb_env("GOBRIDGE_MONITOR_API_KEY"),
        };
    }
    if (!gb_failed(err)) err = check(&d, use, as->boot, &findings, &blueprint);
    if (gb_failed(err)) {
        gb_blueprint_free(blueprint);
    } else {
        *out = blueprint;
    }
    gb_findings_deinit(&findings);
    gb_document_forget(&d);
    return err;
}

struct gb_err gb_document_load(const struct gb_options *o, const char *path,
                               enum gb_document_use use, struct gb_blueprint **out)
{
    return load(o, path, use, &(struct deployed){0}, out);
}

struct gb_err gb_document_load_deployed(const struct gb_options *o, const struct gb_bootstrap *boot,
                                        const struct gb_source_texts *texts,
                                        char digest[GB_SHA256_HEX], struct gb_blueprint **out)
{
    const struct deployed as = {.boot = boot, .texts = texts, .digest = digest};
    return load(o, o->config, GB_DOCUMENT_RUN, &as, out);
}

/* A valid document may be ahead of this release: no problem of the document, so not on stderr. */
void gb_document_print_unsupported(const struct gb_blueprint *b, const struct gb_options *o)
{
    struct gb_findings findings = {0};
    if (gb_failed(gb_blueprint_supported(b, &findings)) && !findings.failed) {
        (void)printf("%s: valid, but this release can't run it:\n", o->config);
        for (size_t i = 0; i < findings.count; i++) {
            const struct gb_finding *f = &findings.items[i];
            bool overlay = f->layer > 0 && f->layer <= o->overlay_count;
            (void)printf("  %s%s", overlay ? o->overlays[f->layer - 1] : "", overlay ? ":" : "");
            if (f->line > 0) (void)printf("%u:%u: ", f->line, f->column); /* else by -set */
            (void)printf("%s\n", f->text);
        }
    }
    gb_findings_deinit(&findings);
}

int gb_process_validate(const struct gb_options *o)
{
    struct gb_blueprint *blueprint = NULL;
    enum gb_document_use use = o->strict ? GB_DOCUMENT_VALIDATE_STRICT : GB_DOCUMENT_VALIDATE;
    struct gb_err err = gb_document_load(o, o->config, use, &blueprint);
    if (!gb_failed(err)) gb_document_print_unsupported(blueprint, o);
    gb_blueprint_free(gb_failed(err) ? NULL : blueprint);
    if (!gb_failed(err)) return 0;
    if (err.code != GB_INVALID_CONFIG)
        (void)fprintf(stderr, "%s: error: %s\n", o->config, err.message);
    return 1;
}
