#ifndef GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_ROW_H
#define GB_ADAPTERS_DYNAMODB_DYNAMODB_OUTBOX_ROW_H

#include "adapters/dynamodb/dynamodb_item.h"
#include "domain/outbox_record.h"
#include "domain/token.h"

/* Items of the outbox table (spec 05 §9.4) as records.
 * Owns:   nothing; views of a row that was read point into the item or into `scratch`.
 * Thread: any. Pure.
 * Errors: writers: the buffer's `failed`. Readers: GB_INVALID_OUTBOX_RECORD for a row of another
 *         form, its text names table and attribute; GB_UNAVAILABLE: no item, or out of memory. */

enum { GB_DBOX_CLAIM_SORT_SIZE = 41 };
#define GB_DBOX_FENCE "FENCE"    /* sort key of the fence row */
#define GB_DBOX_PREFIX "OUTBOX#" /* begins those of records */

struct gb_dbox_row {
    struct gb_outbox_record record; /* envelope: NULL until gb_dbox_row_decode */
    struct gb_bytes partition, sort_key, envelope_id, envelope_json, claimed_by;
    struct gb_bytes body; /* of a direct row: the payload, which envelope_json then lacks */
    enum gb_outbox_status status;
    bool direct; /* in no index */
    int64_t claimed_at_ms, completed_at_ms;
    uint64_t replays; /* replay_count as it stands there, also where record's can't hold it */
};

void gb_dbox_sort_key(struct gb_str *out, struct gb_bytes envelope_id, struct gb_bytes binding_id);
/* Orders by created_at, then seq, as text; what is before 1970 counts as 1970. */
void gb_dbox_claim_sort(char out[GB_DBOX_CLAIM_SORT_SIZE], int64_t created_at_ms, uint64_t seq);
/* The attributes of a new record into the item that is open in `w`; `scratch` is emptied. */
void gb_dbox_write_record(struct gb_json_writer *w, struct gb_bytes partition,
                          const struct gb_outbox_record *record, struct gb_str *scratch);
/* Those of a new record that `token` has claimed already and that enters no index
 * (docs/decisions/0623): `rid` is its id, `env` and `body` are its envelope. */
void gb_dbox_write_direct(struct gb_json_writer *w, struct gb_bytes partition,
                          const struct gb_outbox_record *record, const struct gb_token *token,
                          int64_t now_ms, struct gb_str *scratch);
/* The parts of an update that brings such a row into the indexes and into the usual layout. */
#define GB_DBOX_INDEX_REMOVE "rid, env, body"
const char *gb_dbox_index_set(const struct gb_outbox_record *record);
void gb_dbox_write_index_values(struct gb_json_writer *w, const struct gb_outbox_record *record,
                                struct gb_str *scratch);
void gb_dbox_write_key(struct gb_json_writer *w, struct gb_bytes partition,
                       struct gb_bytes sort_key);
/* On failure `out` holds what could be read: the ordering key among it, if there. */
struct gb_err gb_dbox_row_read(const struct gb_dynamodb_source *from, struct gb_bytes item,
                               struct gb_str *scratch, struct gb_dbox_row *out);
/* Gives record.envelope one reference. */
struct gb_err gb_dbox_row_decode(struct gb_dbox_row *row);
/* By created_at, seq, envelope id. */
int gb_dbox_row_compare(const struct gb_dbox_row *a, const struct gb_dbox_row *b);

#endif
