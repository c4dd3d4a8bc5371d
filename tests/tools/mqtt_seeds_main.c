#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/mqtt_packets.h"
#include "support/mqtt_vectors.h"

/* Writes the seeds of the MQTT fuzz targets from the decoder's vectors: mqtt_seeds
 * <tests/fuzz/corpus>. Run it after a change of support/mqtt_vectors.h. */

static const char *folder_of(const struct mqtt_vector *v)
{
    if (v->version == GB_MQTT_V5) return v->from_client ? "mqtt_v5_server" : "mqtt_v5_client";
    return v->from_client ? "mqtt_v311_server" : "mqtt_v311_client";
}

static bool write_seed(const char *corpus, const struct mqtt_vector *v)
{
    char path[512];
    int size = snprintf(path, sizeof path, "%s/%s", corpus, folder_of(v));
    if (size < 0 || (size_t)size + strlen(v->name) + 2 > sizeof path) return false;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
    path[size++] = '/';
    for (const char *c = v->name; *c != '\0'; c++) {
        path[size++] = isalnum((unsigned char)*c) ? *c : '_';
    }
    path[size] = '\0';
    struct gb_str bytes = {0};
    mqtt_from_hex(&bytes, v->hex);
    FILE *file = fopen(path, "wb");
    bool ok = file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size;
    if (file != NULL && fclose(file) != 0) ok = false;
    gb_str_deinit(&bytes);
    return ok;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: mqtt_seeds <corpus folder>\n");
        return 2;
    }
    for (size_t i = 0; i < mqtt_vector_count; i++) {
        if (write_seed(argv[1], &mqtt_vectors[i])) continue;
        (void)fprintf(stderr, "mqtt_seeds: %s: %s\n", mqtt_vectors[i].name, strerror(errno));
        return 1;
    }
    return 0;
}
