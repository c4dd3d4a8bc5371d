#include "blueprint/rule_rows.h"

/* MQTT strings hold 65535 bytes (spec 03 §3). */
static void texts_fit_into_packets(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        const char *want;
    } rows[] = {
        {65535, ""},
        {65536, "options.session.client_id has 65536 bytes, which is longer than MQTT can carry"}};
    char *base = read_document(DOCUMENTS "standalone.yaml");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct gb_str id = {0};
        gb_str_append_c(&id, "client_id: ");
        for (size_t j = 0; j < rows[i].size; j++) gb_str_append_char(&id, 'c');
        const struct rule_row row = {"client_id", "client_id: plant-bridge", id.data, NULL};
        char *text = patched(base, &row);
        struct gb_err err;
        char *said = findings_of(text, GB_BLUEPRINT_YAML, &err);
        if (strstr(said, rows[i].want) == NULL) fail_msg("%zu bytes: %s", rows[i].size, said);
        assert_int_equal(said[0] == '\0', rows[i].want[0] == '\0');
        free(said);
        free(text);
        gb_str_deinit(&id);
    }
    free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_fit_into_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
