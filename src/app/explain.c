#include "blueprint/explain.h"

#include <stdio.h>

#include "app/document.h"
#include "app/process.h"

static bool print(struct gb_bytes text)
{
    bool ok = fwrite(text.data, 1, text.size, stdout) == text.size && fflush(stdout) == 0;
    if (!ok) (void)fputs("gobridge: error: the answer could not be written to stdout\n", stderr);
    return ok;
}

static bool complain(const struct gb_options *o, struct gb_err err)
{
    (void)fprintf(stderr, "%s: error: %s\n", o->config, err.message);
    return false;
}

/* What an invalid document leaves to say is said by the findings alone. */
static bool explain(const struct gb_options *o, const struct gb_document *d,
                    const struct gb_findings *findings, const struct gb_blueprint *b)
{
    struct gb_explanation of = {b, findings, d->names};
    struct gb_str text = {0};
    struct gb_err err = o->json ? gb_explain_json(&of, &text) : gb_explain_text(&of, &text);
    bool ok = !gb_failed(err) || complain(o, err);
    if (ok && text.size > 0) ok = print(gb_str_bytes(&text));
    gb_str_deinit(&text);
    if (ok && b != NULL && !o->json) gb_document_print_unsupported(b, o);
    return ok;
}

static bool check(const struct gb_options *o, const struct gb_document *d,
                  struct gb_findings *findings)
{
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_findings_check(findings);
    if (!gb_failed(err)) err = gb_blueprint_load_layers(&d->input, findings, &b);
    if (gb_failed(err) && err.code != GB_INVALID_CONFIG) return complain(o, err);
    gb_document_print_findings(findings, d);
    bool ok = explain(o, d, findings, b) && b != NULL;
    gb_blueprint_free(b);
    return ok && !(o->strict && findings->warning_count > 0);
}

int gb_process_explain(const struct gb_options *o)
{
    struct gb_document d = {0};
    struct gb_findings findings = {0};
    struct gb_err err = gb_document_read(&d, o, o->config, &findings);
    bool ok = gb_failed(err) ? complain(o, err) : check(o, &d, &findings);
    gb_findings_deinit(&findings);
    gb_document_forget(&d);
    return ok ? 0 : 1;
}
