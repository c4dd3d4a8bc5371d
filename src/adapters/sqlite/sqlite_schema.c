#include "adapters/sqlite/sqlite_schema.h"

#include "adapters/sqlite/sqlite_tx.h"

struct column {
    const char *name;
    const char *type; /* with default: addable to an existing table */
};
#define TEXT_EMPTY "TEXT NOT NULL DEFAULT ''"
#define INT_ZERO "INTEGER NOT NULL DEFAULT 0"

static const char outbox_table[] =
    "CREATE TABLE IF NOT EXISTS outbox("
    "id TEXT PRIMARY KEY NOT NULL,"
    "partition_key TEXT NOT NULL,route_id TEXT NOT NULL,envelope_id TEXT NOT NULL,"
    "binding_id TEXT NOT NULL,session_id TEXT NOT NULL DEFAULT '',"
    "address TEXT NOT NULL DEFAULT '',envelope_json TEXT NOT NULL,headers_json TEXT,"
    "status TEXT NOT NULL DEFAULT 'pending',claimed_by TEXT NOT NULL DEFAULT '',"
    "claim_version INTEGER NOT NULL DEFAULT 0,claimed_at INTEGER NOT NULL DEFAULT 0,"
    "first_attempted_at INTEGER NOT NULL DEFAULT 0,replay_count INTEGER NOT NULL DEFAULT 0,"
    "created_at INTEGER NOT NULL,expires_at INTEGER NOT NULL DEFAULT 0,"
    "completed_at INTEGER NOT NULL DEFAULT 0,seq INTEGER NOT NULL DEFAULT 0,"
    "ordering_key TEXT NOT NULL DEFAULT '');"
    "CREATE TABLE IF NOT EXISTS outbox_partition_fence("
    "partition_key TEXT PRIMARY KEY NOT NULL,max_version INTEGER NOT NULL DEFAULT 0,"
    "updated_at INTEGER NOT NULL DEFAULT 0)";
static const struct column outbox_columns[] = {
    {"session_id", TEXT_EMPTY},   {"address", TEXT_EMPTY},
    {"headers_json", "TEXT"},     {"status", "TEXT NOT NULL DEFAULT 'pending'"},
    {"claimed_by", TEXT_EMPTY},   {"claim_version", INT_ZERO},
    {"claimed_at", INT_ZERO},     {"first_attempted_at", INT_ZERO},
    {"replay_count", INT_ZERO},   {"expires_at", INT_ZERO},
    {"completed_at", INT_ZERO},   {"seq", INT_ZERO},
    {"ordering_key", TEXT_EMPTY}, {NULL, NULL},
};
static const char outbox_indexes[] =
    "CREATE INDEX IF NOT EXISTS idx_outbox_partition_status ON outbox(partition_key,status);"
    "CREATE INDEX IF NOT EXISTS idx_outbox_status_pending ON outbox(status)"
    " WHERE status='pending';"
    "CREATE UNIQUE INDEX IF NOT EXISTS idx_outbox_identity"
    " ON outbox(partition_key,envelope_id,binding_id);"
    "CREATE INDEX IF NOT EXISTS idx_outbox_completed ON outbox(completed_at)"
    " WHERE status='completed';"
    "CREATE INDEX IF NOT EXISTS idx_outbox_expired ON outbox(expires_at)"
    " WHERE status='expired';"
    "CREATE INDEX IF NOT EXISTS idx_outbox_ordering"
    " ON outbox(partition_key,ordering_key,created_at,seq) WHERE ordering_key<>''";

static const char dlq_table[] =
    "CREATE TABLE IF NOT EXISTS dlq("
    "id TEXT PRIMARY KEY NOT NULL,route_id TEXT NOT NULL,"
    "binding_id TEXT NOT NULL DEFAULT '',session_id TEXT NOT NULL DEFAULT '',"
    "source_id TEXT NOT NULL DEFAULT '',correlation_id TEXT NOT NULL DEFAULT '',"
    "address TEXT NOT NULL DEFAULT '',reason TEXT NOT NULL DEFAULT '',"
    "category TEXT NOT NULL DEFAULT '',error_code TEXT NOT NULL DEFAULT '',"
    "last_error TEXT NOT NULL DEFAULT '',envelope_json TEXT NOT NULL,"
    "failed_at INTEGER NOT NULL,attempts INTEGER NOT NULL DEFAULT 0,"
    "redrive_mode TEXT NOT NULL DEFAULT '',extra_info TEXT NOT NULL DEFAULT '')";
static const struct column dlq_columns[] = {
    {"binding_id", TEXT_EMPTY},
    {"session_id", TEXT_EMPTY},
    {"source_id", TEXT_EMPTY},
    {"address", TEXT_EMPTY},
    {"correlation_id", TEXT_EMPTY},
    {"reason", TEXT_EMPTY},
    {"category", TEXT_EMPTY},
    {"error_code", TEXT_EMPTY},
    {"last_error", TEXT_EMPTY},
    {"attempts", INT_ZERO},
    {"redrive_mode", TEXT_EMPTY},
    {"extra_info", TEXT_EMPTY},
    {NULL, NULL},
};
static const char dlq_indexes[] = "CREATE INDEX IF NOT EXISTS idx_dlq_route_id ON dlq(route_id);"
                                  "CREATE INDEX IF NOT EXISTS idx_dlq_category ON dlq(category);"
                                  "CREATE INDEX IF NOT EXISTS idx_dlq_failed_at ON dlq(failed_at)";

static const char subscriptions_tables[] =
    "CREATE TABLE IF NOT EXISTS managed_subscription_baselines("
    "storage_identity TEXT PRIMARY KEY NOT NULL);"
    "CREATE TABLE IF NOT EXISTS managed_subscription_filters("
    "storage_identity TEXT NOT NULL,filter TEXT NOT NULL,"
    "PRIMARY KEY(storage_identity,filter),"
    "FOREIGN KEY(storage_identity) REFERENCES managed_subscription_baselines(storage_identity)"
    " ON DELETE CASCADE)";

static const char lease_table[] =
    "CREATE TABLE IF NOT EXISTS lease("
    "lease_id TEXT PRIMARY KEY NOT NULL,owner TEXT NOT NULL DEFAULT '',"
    "version INTEGER NOT NULL DEFAULT 0,acquired_at INTEGER NOT NULL DEFAULT 0,"
    "renewed_at INTEGER NOT NULL DEFAULT 0,expires_at INTEGER NOT NULL DEFAULT 0,"
    "endpoints_json TEXT NOT NULL DEFAULT '')";

static const struct schema {
    const char *name; /* of the role */
    const char *tables;
    const char *upgraded; /* table whose columns may be missing; NULL: none */
    const struct column *columns;
    const char *indexes;
} schemas[GB_SQLITE_ROLES] = {
    [GB_SQLITE_OUTBOX] = {"outbox", outbox_table, "outbox", outbox_columns, outbox_indexes},
    [GB_SQLITE_DLQ] = {"dlq", dlq_table, "dlq", dlq_columns, dlq_indexes},
    [GB_SQLITE_SUBSCRIPTIONS] = {"managed_subscriptions", subscriptions_tables, NULL, NULL, ""},
    [GB_SQLITE_LEASE] = {"lease", lease_table, NULL, NULL, ""},
};

const char *gb_sqlite_role_name(enum gb_sqlite_role role)
{
    return schemas[role].name;
}

static bool has_column(sqlite3 *sql, const char *table, const char *column)
{
    return sqlite3_table_column_metadata(sql, NULL, table, column, NULL, NULL, NULL, NULL, NULL) ==
           SQLITE_OK;
}

/* Another connection may add the column between our look and our ALTER; then it is there all the
 * same. */
static struct gb_err add_column(sqlite3 *sql, const char *path, const char *table,
                                const struct column *column)
{
    if (has_column(sql, table, column->name)) return gb_ok();
    char text[192];
    (void)sqlite3_snprintf((int)sizeof text, text, "ALTER TABLE %s ADD COLUMN %s %s", table,
                           column->name, column->type);
    struct gb_err err = gb_sqlite_exec(sql, path, text);
    if (gb_failed(err) && has_column(sql, table, column->name)) return gb_ok();
    return err;
}

static struct gb_err apply(sqlite3 *sql, const char *path, const struct schema *s)
{
    struct gb_err err = gb_sqlite_exec(sql, path, s->tables);
    for (const struct column *c = s->columns; c != NULL && c->name != NULL && !gb_failed(err); c++)
        err = add_column(sql, path, s->upgraded, c);
    if (!gb_failed(err)) err = gb_sqlite_exec(sql, path, s->indexes);
    return err;
}

/* One transaction: one fsync for a new file, and none for a file that is up to date. */
struct gb_err gb_sqlite_schema_apply(sqlite3 *sql, const char *path, enum gb_sqlite_role role)
{
    struct gb_err err = gb_sqlite_exec(sql, path, "BEGIN IMMEDIATE");
    if (gb_failed(err)) return err;
    err = apply(sql, path, &schemas[role]);
    if (!gb_failed(err)) err = gb_sqlite_exec(sql, path, "COMMIT");
    if (!gb_failed(err)) return err;
    bool shape =
        (sqlite3_errcode(sql) & 0xff) == SQLITE_ERROR; /* SQL that does not fit the table */
    if (sqlite3_get_autocommit(sql) == 0) (void)gb_sqlite_exec(sql, path, "ROLLBACK");
    if (shape) {
        err = gb_err_in(err, "%s schema", schemas[role].name);
        err.code = GB_INVALID_CONFIG;
        err.class_ = gb_code_class(GB_INVALID_CONFIG);
    }
    return err;
}
