#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "blueprint/blueprint.h"
#include "blueprint/diff.h"
#include "blueprint/explain.h"
#include "blueprint/identity.h"
#include "blueprint/inspect.h"

/* Covers: document_yaml, document_json, explain_json.
 * Any bytes as YAML and as JSON: no crash, verdict and findings agree, the findings come in
 * document order with printable places, and the resolved values of an accepted document keep their
 * bounds and can be explained. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_findings(const struct gb_findings *f, struct gb_err err)
{
    GB_ASSERT(!f->failed);
    GB_ASSERT(gb_failed(err) == (f->error_count > 0));
    GB_ASSERT(f->count <= 2 * (size_t)GB_FINDINGS_MAX &&
              f->count <= f->error_count + f->warning_count);
    for (size_t i = 0; i < f->count; i++) {
        GB_ASSERT((f->items[i].line == 0) == (f->items[i].column == 0));
        GB_ASSERT(i == 0 || f->items[i - 1].line <= f->items[i].line);
        GB_ASSERT(f->items[i].text[0] != '\0' && gb_utf8_safe(gb_bytes_c(f->items[i].text)));
        GB_ASSERT(gb_utf8_safe(gb_bytes_c(f->items[i].path)));
        GB_ASSERT(gb_utf8_safe(gb_bytes_c(f->items[i].id)));
    }
    struct gb_str text = {0};
    gb_findings_print(f, (const char *const[]){"doc"}, &text);
    GB_ASSERT(!text.failed);
    GB_ASSERT(f->count == 0 || gb_utf8_valid(gb_str_bytes(&text)));
    gb_str_deinit(&text);
}

static void check_route(const struct gb_blueprint *b, const struct gb_bp_route *r)
{
    struct gb_policy policy = gb_blueprint_route_policy(r);
    struct gb_drain_policy drain = gb_blueprint_drain_policy(b, r);
    GB_ASSERT(policy.max_in_flight > 0 && policy.send_timeout_ns > 0);
    GB_ASSERT(policy.backoff.multiplier >= 1 && policy.backoff.max_ns > 0);
    GB_ASSERT(drain.batch_size > 0 && drain.batch_size <= drain.max_batch_size);
    GB_ASSERT(drain.min_interval_ns > 0 && drain.min_interval_ns <= drain.max_interval_ns);
    GB_ASSERT(drain.interval_ns > 0);
    GB_ASSERT(r->delivery_mode.value != GB_SHARED_OUTBOX ||
              drain.stale_claim_ns >= policy.send_timeout_ns);
    GB_ASSERT(r->receiver != NULL && r->binding_ids.count > 0);
    for (size_t i = 0; i < r->binding_ids.count; i++) {
        char partition[GB_BLUEPRINT_PARTITION_MAX];
        GB_ASSERT(r->bindings[i] != NULL && r->bindings[i]->sender != NULL);
        gb_blueprint_partition(r, r->bindings[i], partition);
        GB_ASSERT(strlen(partition) > strlen("SESSION#"));
    }
}

/* An accepted document has a digest, is no change to itself and can be described; only a number
 * beyond the doubles has no normal form. */
static void check_identity(const struct gb_blueprint *b, struct gb_bytes bytes,
                           const struct gb_findings *findings)
{
    static const char *const names[] = {"doc"};
    char digest[GB_SHA256_HEX];
    struct gb_diff diff = {0};
    struct gb_err err = gb_blueprint_digest(b, digest);
    GB_ASSERT(!gb_failed(err) || err.code == GB_INVALID_CONFIG);
    struct gb_err compared = gb_diff_init(&diff, b, b);
    GB_ASSERT(compared.code == err.code);
    if (gb_failed(err)) return;
    GB_ASSERT(strlen(digest) == GB_SHA256_HEX - 1);
    GB_ASSERT(diff.equal && diff.retired_units == 0 && diff.added_units == 0);
    GB_ASSERT(diff.class_ == GB_DIFF_LIVE_SAFE && diff.swap == GB_DIFF_IN_PLACE);
    gb_diff_deinit(&diff);
    struct gb_inspection of = {bytes, findings, names, b};
    struct gb_str text = {0};
    GB_ASSERT(!gb_failed(gb_inspect(&of, &text)) && gb_utf8_valid(gb_str_bytes(&text)));
    gb_str_deinit(&text);
}

static void check_explanation(const struct gb_blueprint *b, const struct gb_findings *f)
{
    const struct gb_explanation of = {b, f, (const char *const[]){"doc"}};
    struct gb_str text = {0};
    struct gb_err err = gb_explain_text(&of, &text);
    GB_ASSERT(!gb_failed(err) || err.code == GB_INVALID_CONFIG); /* no normal form, no digest */
    GB_ASSERT(gb_utf8_valid(gb_str_bytes(&text)));
    gb_str_clear(&text);
    GB_ASSERT(gb_explain_json(&of, &text).code == err.code);
    GB_ASSERT(gb_utf8_valid(gb_str_bytes(&text)) && text.data[text.size - 1] == '\n');
    gb_str_deinit(&text);
}

static void load(struct gb_bytes bytes, enum gb_blueprint_format format)
{
    struct gb_findings findings = {0};
    struct gb_blueprint *b = NULL;
    struct gb_err err = gb_blueprint_load(bytes, "doc", format, &findings, &b);
    GB_ASSERT(gb_failed(err) == (b == NULL));
    check_findings(&findings, err);
    for (size_t i = 0; b != NULL && i < b->route_count; i++) check_route(b, &b->routes[i]);
    if (b != NULL) check_identity(b, bytes, &findings);
    check_explanation(b, &findings);
    gb_blueprint_free(b);
    gb_findings_deinit(&findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    load(gb_bytes(data, size), GB_BLUEPRINT_YAML);
    load(gb_bytes(data, size), GB_BLUEPRINT_JSON);
    return 0;
}
