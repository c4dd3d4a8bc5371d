#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_hex(const uint8_t *digest, size_t size, const char *want)
{
    char text[GB_SHA256_HEX];
    gb_hex(gb_bytes(digest, size), text);
    assert_string_equal(text, want);
}

static const struct digest_row {
    const char *text;
    const char *sha256, *md5; /* FIPS 180-4, RFC 1321 */
} digest_rows[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
     "d41d8cd98f00b204e9800998ecf8427e"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
     "900150983cd24fb0d6963f7d28e17f72"},
};

static void known_digests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof digest_rows / sizeof digest_rows[0]; i++) {
        char sha256[GB_SHA256_HEX];
        char md5[GB_MD5_HEX];
        gb_sha256_hex(gb_bytes_c(digest_rows[i].text), sha256);
        gb_md5_hex(gb_bytes_c(digest_rows[i].text), md5);
        assert_string_equal(sha256, digest_rows[i].sha256);
        assert_string_equal(md5, digest_rows[i].md5);
    }
    char sha256[GB_SHA256_HEX];
    gb_sha256_hex(gb_bytes(NULL, 0), sha256);
    assert_string_equal(sha256, digest_rows[0].sha256);
}

static void digest_of_a_long_text(void **state)
{
    (void)state;
    char *text = malloc(1000000);
    assert_non_null(text);
    memset(text, 'a', 1000000);
    char sha256[GB_SHA256_HEX];
    gb_sha256_hex(gb_bytes(text, 1000000), sha256);
    free(text);
    assert_string_equal(sha256, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static const struct hmac_row {
    const char *name;
    uint8_t key_byte; /* repeated, or the key when 0 */
    size_t key_size;
    const char *key, *text;
    const char *want;
} hmac_rows[] = {
    {"RFC 4231 case 1", 0x0b, 20, NULL, "Hi There",
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {"RFC 4231 case 2", 0, 4, "Jefe", "what do ya want for nothing?",
     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    {"RFC 4231 case 6, long key", 0xaa, 131, NULL,
     "Test Using Larger Than Block-Size Key - Hash Key First",
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    {"both empty", 0, 0, "", "",
     "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
};

static void streams_equal_whole_texts(void **state)
{
    (void)state;
    uint8_t text[300];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)(i * 7);
    for (size_t piece = 1; piece < 140; piece++) {
        uint8_t whole[GB_SHA256_SIZE];
        uint8_t pieces[GB_SHA256_SIZE];
        struct gb_sha256_stream stream;
        gb_sha256(gb_bytes(text, sizeof text), whole);
        gb_sha256_begin(&stream);
        for (size_t at = 0; at < sizeof text; at += piece) {
            size_t left = sizeof text - at;
            gb_sha256_add(&stream, gb_bytes(text + at, left < piece ? left : piece));
            gb_sha256_add(&stream, gb_bytes(NULL, 0));
        }
        gb_sha256_end(&stream, pieces);
        assert_memory_equal(whole, pieces, sizeof whole);
    }
}

static void hmacs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hmac_rows / sizeof hmac_rows[0]; i++) {
        const struct hmac_row *row = &hmac_rows[i];
        uint8_t key[200];
        memset(key, row->key_byte, sizeof key);
        if (row->key != NULL) memcpy(key, row->key, row->key_size);
        uint8_t digest[GB_SHA256_SIZE];
        gb_hmac_sha256(gb_bytes(key, row->key_size), gb_bytes_c(row->text), digest);
        assert_hex(digest, sizeof digest, row->want);
    }
}

static void key_of_one_block_is_used_as_it_is(void **state)
{
    (void)state;
    uint8_t key[64];
    uint8_t text[200];
    uint8_t digest[GB_SHA256_SIZE];
    memset(key, 'k', sizeof key);
    memset(text, 'x', sizeof text);
    gb_hmac_sha256(gb_bytes(key, sizeof key), gb_bytes(text, sizeof text), digest);
    assert_hex(digest, sizeof digest,
               "3c469482eb841790ea999241b8c6238f7a2df12b5bf79eb6d7ab592729ed9954");
}

static void parts_are_length_prefixed(void **state)
{
    (void)state;
    const struct gb_bytes parts[] = {gb_bytes_c("a"), gb_bytes(NULL, 0), gb_bytes_c("bc")};
    const struct gb_bytes shifted[] = {gb_bytes_c("ab"), gb_bytes(NULL, 0), gb_bytes_c("c")};
    uint8_t digest[GB_SHA256_SIZE];
    gb_sha256_parts(parts, 3, 4, digest);
    assert_hex(digest, sizeof digest,
               "e7ab503819a08f424da9ba8421b745917f2f82f92b7e6a09ecce37d61289b827");
    gb_sha256_parts(parts, 3, 8, digest);
    assert_hex(digest, sizeof digest,
               "fb9abcb07180be92066c09ce253c0a060e4634fe3accf064b556d89a691c8e5f");
    uint8_t other[GB_SHA256_SIZE];
    gb_sha256_parts(shifted, 3, 8, other);
    assert_memory_not_equal(digest, other, sizeof digest);
    gb_sha256_parts(NULL, 0, 8, digest);
    assert_hex(digest, sizeof digest, digest_rows[0].sha256);
}

static void crc32(void **state)
{
    (void)state;
    assert_int_equal(gb_crc32(gb_bytes(NULL, 0)), 0);
    assert_int_equal(gb_crc32(gb_bytes_c("123456789")), 0xcbf43926);
    /* Every entry of the table: bytes 0 to 255, as zlib.crc32(bytes(range(256))) answers. */
    uint8_t all[256];
    for (size_t i = 0; i < sizeof all; i++) all[i] = (uint8_t)i;
    assert_int_equal(gb_crc32(gb_bytes(all, sizeof all)), 0x29058c73);
}

static void hex_is_lower_case(void **state)
{
    (void)state;
    char text[9];
    gb_hex(gb_bytes("\x00\x9f\xab\xff", 4), text);
    assert_string_equal(text, "009fabff");
    gb_hex(gb_bytes(NULL, 0), text);
    assert_string_equal(text, "");
}

static void wipe_clears(void **state)
{
    (void)state;
    char secret[8] = "secret";
    const char zeros[8] = {0};
    gb_wipe(secret, sizeof secret);
    assert_memory_equal(secret, zeros, sizeof secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_digests),
        cmocka_unit_test(digest_of_a_long_text),
        cmocka_unit_test(streams_equal_whole_texts),
        cmocka_unit_test(hmacs),
        cmocka_unit_test(key_of_one_block_is_used_as_it_is),
        cmocka_unit_test(parts_are_length_prefixed),
        cmocka_unit_test(crc32),
        cmocka_unit_test(hex_is_lower_case),
        cmocka_unit_test(wipe_clears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
