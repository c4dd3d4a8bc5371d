#include "contract/lease_dynamodb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "adapters/dynamodb/dynamodb_lease.h"

enum { START_MS = 1000000 };

static int64_t wall_of(void *arg)
{
    return ((struct lease_process *)arg)->wall_ms;
}

static uint64_t mono_of(void *arg)
{
    return ((struct lease_process *)arg)->mono_ns;
}

static void new_store(struct lease_process *p)
{
    const struct gb_dynamodb_lease_cfg cfg = {.reactor = p->driver.reactor,
                                              .client = p->driver.client,
                                              .table = p->table,
                                              .wall_ms = wall_of,
                                              .mono_ns = mono_of,
                                              .clock_arg = p};
    assert_int_equal(gb_dynamodb_lease_new(&cfg, &p->b.store).code, GB_OK);
}

void lease_process_open(struct lease_process *p, struct dynamodb_rig *rig, const char *client,
                        const char *table, int64_t attempt_timeout_ns)
{
    char endpoint[DYNAMODB_ENDPOINT_SIZE];
    *p = (struct lease_process){.wall_ms = START_MS, .mono_ns = 1, .table = table};
    dynamodb_rig_client(rig, client, endpoint);
    dynamodb_driver_open(&p->driver,
                         &(struct dynamodb_driver_cfg){.endpoint = endpoint,
                                                       .attempt_timeout_ns = attempt_timeout_ns});
    p->b.driver = (struct store_driver){.loop = p->driver.loop, .reactor = p->driver.reactor};
    new_store(p);
}

void lease_process_close(struct lease_process *p)
{
    STORE_CLOSE(&p->b.driver, p->b.store);
    dynamodb_driver_close(&p->driver);
}

void lease_process_restart(struct lease_process *p)
{
    STORE_CLOSE(&p->b.driver, p->b.store);
    p->mono_ns = 1;
    new_store(p);
}

void lease_process_create_table(struct lease_process *p)
{
    dynamodb_driver_create_table(&p->driver, GB_DYNAMODB_LEASE, p->table);
}

const char *lease_process_owner(struct lease_process *p, const char *id, uint64_t *version)
{
    static char owner[64];
    char key[64];
    struct gb_dynamodb_call call = {0};
    struct gb_str scratch = {0};
    struct gb_bytes name = {0};
    (void)snprintf(key, sizeof key, "LEASE#%s", id);
    gb_dynamodb_begin(&call, GB_DYNAMODB_GET_ITEM, p->table);
    gb_dynamodb_object(&call, GB_DYNAMODB_KEY);
    gb_dynamodb_w_s_c(&call.w, "PK", key);
    gb_dynamodb_object_end(&call);
    gb_dynamodb_flag(&call, GB_DYNAMODB_CONSISTENT_READ);
    assert_int_equal(dynamodb_driver_run(&p->driver, &call), GB_OK);
    *version = 0;
    if (call.answer.item.size > 0) {
        const struct gb_dynamodb_source from = {p->table, "GetItem"};
        struct gb_dynamodb_field fields[] = {
            {"owner", GB_DYNAMODB_FIELD_S, true, &name, false},
            {"version", GB_DYNAMODB_FIELD_U64, true, version, false}};
        assert_int_equal(gb_dynamodb_item_read(&from, call.answer.item, &scratch, fields, 2).code,
                         GB_OK);
    }
    (void)snprintf(owner, sizeof owner, "%.*s", (int)name.size, (const char *)name.data);
    gb_str_deinit(&scratch);
    gb_dynamodb_call_deinit(&call);
    return owner;
}
