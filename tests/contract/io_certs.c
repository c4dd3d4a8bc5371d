#include <stdlib.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/assert.h"
#include "base/str.h"
#include "contract/io_peer.h"

static char *text_of(BIO *bio)
{
    char *data = NULL;
    long size = BIO_get_mem_data(bio, &data);
    char *text = gb_bytes_dup(gb_bytes(data, (size_t)size));
    GB_ASSERT(text != NULL);
    BIO_free(bio);
    return text;
}

static void add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
    GB_ASSERT(ext != NULL && X509_add_ext(cert, ext, -1) == 1);
    X509_EXTENSION_free(ext);
}

static void add_names(X509 *cert, const struct gb_test_cert_cfg *cfg)
{
    char *names = cfg->ip == NULL ? gb_asprintf("DNS:%s", cfg->name)
                                  : gb_asprintf("DNS:%s,IP:%s", cfg->name, cfg->ip);
    add_extension(cert, NID_subject_alt_name, names);
    free(names);
    add_extension(cert, NID_basic_constraints,
                  cfg->issuer == NULL ? "critical,CA:TRUE" : "CA:FALSE");
}

static void sign(X509 *cert, EVP_PKEY *own_key, const struct gb_test_cert *issuer)
{
    if (issuer == NULL) {
        GB_ASSERT(X509_set_issuer_name(cert, X509_get_subject_name(cert)) == 1);
        GB_ASSERT(X509_sign(cert, own_key, EVP_sha256()) > 0);
        return;
    }
    BIO *bio = BIO_new_mem_buf(issuer->cert_pem, -1);
    X509 *ca = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    bio = BIO_new_mem_buf(issuer->key_pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    GB_ASSERT(X509_set_issuer_name(cert, X509_get_subject_name(ca)) == 1);
    GB_ASSERT(X509_sign(cert, key, EVP_sha256()) > 0);
    X509_free(ca);
    EVP_PKEY_free(key);
}

void gb_test_cert_make(const struct gb_test_cert_cfg *cfg, struct gb_test_cert *out)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    GB_ASSERT(key != NULL && cert != NULL);
    long serial = 0;
    GB_ASSERT(RAND_bytes((unsigned char *)&serial, 4) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
    GB_ASSERT(X509_set_version(cert, 2) == 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), cfg->valid_from_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), cfg->valid_to_s);
    GB_ASSERT(X509_set_pubkey(cert, key) == 1);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)cfg->name, -1, -1, 0);
    add_names(cert, cfg);
    sign(cert, key, cfg->issuer);
    BIO *cert_bio = BIO_new(BIO_s_mem());
    BIO *key_bio = BIO_new(BIO_s_mem());
    GB_ASSERT(PEM_write_bio_X509(cert_bio, cert) == 1);
    GB_ASSERT(PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    *out = (struct gb_test_cert){text_of(cert_bio), text_of(key_bio)};
    X509_free(cert);
    EVP_PKEY_free(key);
}

void gb_test_cert_deinit(struct gb_test_cert *cert)
{
    free(cert->cert_pem);
    free(cert->key_pem);
    *cert = (struct gb_test_cert){0};
}
