#include "fuzz/mqtt_fuzz.h"

/* What a server reads, MQTT 3.1.1.
 * Covers: mqtt_decode_client. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return mqtt_fuzz(data, size, GB_MQTT_V311, true);
}
