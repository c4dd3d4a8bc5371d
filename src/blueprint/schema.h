#ifndef GB_BLUEPRINT_SCHEMA_H
#define GB_BLUEPRINT_SCHEMA_H

#include "blueprint/blueprint.h"

/* Every key of the document as data (spec 01 §3): key, type, place in the model, default, bounds,
 * words. The decoder is one loop over these tables; documentation and a JSON Schema can be written
 * from them.
 * Owns:   nothing; all tables are constant.
 * Thread: any.
 * Errors: none. */

enum gb_field_type {
    GB_FIELD_TEXT,      /* const char * */
    GB_FIELD_BOOL,      /* struct gb_opt_bool */
    GB_FIELD_INT,       /* struct gb_opt_int */
    GB_FIELD_NUMBER,    /* struct gb_opt_num */
    GB_FIELD_DURATION,  /* struct gb_opt_ns */
    GB_FIELD_WORD,      /* struct gb_opt_word */
    GB_FIELD_TEXTS,     /* struct gb_bp_strings; a comma-separated text is accepted too */
    GB_FIELD_TEXT_MAP,  /* struct gb_bp_map */
    GB_FIELD_BLOCK,     /* the block's struct, embedded */
    GB_FIELD_BLOCKS,    /* pointer to an array, and a size_t at `count_offset` */
    GB_FIELD_BLOCK_MAP, /* the same from a map; the key goes into the entry's `name` */
    GB_FIELD_RAW,       /* const struct gb_node *, decoded later by the kind's own table */
};

enum {
    GB_FIELD_REQUIRED = 1,
    GB_FIELD_SECRET = 2,       /* the value never appears in a finding */
    GB_FIELD_ZERO_DEFAULT = 4, /* a written zero means the default */
    GB_FIELD_OFF = 8,          /* a duration that also takes the word `off`: given 0 */
    GB_FIELD_SECTION = 16,     /* entries are named sections[i] (id) in findings */
    GB_FIELD_ANY_CASE = 32,    /* words */
    GB_FIELD_COMMAS = 64,      /* texts: one text with commas is accepted (options only) */
    /* For the normal form (spec 01 §9.1). */
    GB_FIELD_KIND = 128,       /* a word whose aliases equal their kind */
    GB_FIELD_NO_CONTENT = 256, /* not part of it */
    GB_FIELD_FILLED = 512,     /* a duration whose absence equals its default */
    GB_FIELD_SET = 1024,       /* texts whose order and repeats mean nothing */
    GB_FIELD_CONDITION = 2048, /* raw: the value of a condition */
    /* How layers merge (merge.h); a field with neither is replaced as a whole. */
    GB_FIELD_MERGE = 4096, /* key by key; of a list with ids: each entry key by key */
    GB_FIELD_BY_ID = 8192, /* list: entries with the same id are the same entry */
};

/* Stands for a secret wherever one would be shown (spec 01 §8.2). */
#define GB_REDACTED "[REDACTED]"

struct gb_word {
    const char *name;
    int value;
};

struct gb_block;

struct gb_field {
    const char *key;
    enum gb_field_type type;
    unsigned flags;
    size_t offset, count_offset;
    int64_t min, max;  /* integer, duration (ns) */
    enum gb_rule rule; /* of these bounds; NONE: K4 */
    int64_t def;       /* integer, duration, boolean, word */
    double num_min, num_max, num_def;
    const char *text_def;
    const struct gb_word *words; /* ends with a NULL name */
    const struct gb_block *block;
    /* Raw: the table that reads it, from the decoded entry; NULL: none does. */
    const struct gb_block *(*options_of)(const void *entry);
};

struct gb_block {
    const char *name;
    size_t size; /* of the struct */
    const struct gb_field *fields;
    size_t count;
    bool camel; /* snake_case is accepted beside camelCase (spec 02 §9) */
    bool inner; /* fields of an enclosing struct, whose `node` stays */
};

extern const struct gb_block gb_schema_root;
extern const struct gb_word gb_schema_kinds[];

/* NULL: the role has no such type, or the kind has no options there. */
const struct gb_block *gb_schema_store_options(enum gb_bp_role role, enum gb_bp_store_type type);
const char *gb_schema_role_name(enum gb_bp_role role);
const struct gb_block *gb_schema_processor_config(enum gb_bp_processor_type type);
/* A key that holds a secret wherever it stands (spec 01 §8.2): for who does not know the table
 * yet. */
bool gb_schema_is_secret(const char *key);
/* NULL: the block has no such key. Where the block is `camel`, either spelling finds it. */
const struct gb_field *gb_schema_field(const struct gb_block *block, const char *key);
/* The name of a word's value; the first of several. */
const char *gb_schema_word_name(const struct gb_word *words, int value);

/* Options of each kind: the table for the map itself. MQTT nests its keys (spec 03 §3). */
extern const struct gb_block gb_schema_mqtt_session_options;  /* struct gb_bp_session */
extern const struct gb_block gb_schema_mqtt_topic_options;    /* struct gb_bp_topic */
extern const struct gb_block gb_schema_mqtt_receiver_options; /* struct gb_bp_receiver */
extern const struct gb_block gb_schema_mqtt_sender_options;   /* struct gb_bp_sender */
extern const struct gb_block gb_schema_sqs_receiver;
extern const struct gb_block gb_schema_sqs_sender;
extern const struct gb_block gb_schema_http_receiver;
extern const struct gb_block gb_schema_http_sender;

/* For `options_of`. */
const struct gb_block *gb_schema_options_of_store(const void *entry);
const struct gb_block *gb_schema_options_of_session(const void *entry);
const struct gb_block *gb_schema_options_of_topic(const void *entry);
const struct gb_block *gb_schema_options_of_receiver(const void *entry);
const struct gb_block *gb_schema_options_of_sender(const void *entry);
const struct gb_block *gb_schema_options_of_binding(const void *entry);
const struct gb_block *gb_schema_config_of_processor(const void *entry);

/* Shared by the tables. */
extern const struct gb_block gb_schema_telemetry;
extern const struct gb_block gb_schema_route;

#define GB_FIELD_AT(strct, member) .offset = offsetof(struct strct, member)
#define GB_FIELDS(array) .fields = (array), .count = sizeof(array) / sizeof((array)[0])
#define GB_FOREVER INT64_MAX

#endif
