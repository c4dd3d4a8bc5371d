#ifndef GB_ADAPTERS_MQTT_MQTT_VERSION_H
#define GB_ADAPTERS_MQTT_MQTT_VERSION_H

/* The protocol level byte of CONNECT (spec 03 §1, §13).
 * Owns:   nothing.
 * Thread: any.
 * Errors: none. */
enum gb_mqtt_version { GB_MQTT_V5 = 5, GB_MQTT_V311 = 4 };

#endif
