#ifndef GB_TESTS_SUPPORT_MQTT_VECTORS_H
#define GB_TESTS_SUPPORT_MQTT_VECTORS_H

#include "adapters/mqtt/mqtt_version.h"

#include <stdbool.h>
#include <stddef.h>

/* Whole MQTT packets with what the decoder must say about them. The seeds of the fuzz targets are
 * made of them too (tests/tools/mqtt_seeds_main.c).
 * Owns:   nothing.
 * Thread: any.
 * Errors: none. */

struct mqtt_vector {
    const char *name;
    enum gb_mqtt_version version;
    bool from_client;
    const char *hex;
    const char *why; /* part of the decoder's message; NULL: it decodes */
};

extern const struct mqtt_vector mqtt_vectors[];
extern const size_t mqtt_vector_count;

#endif
