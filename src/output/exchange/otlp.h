/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenTelemetry's profiles: ProfilesData of
 * opentelemetry/proto/profiles/v1development/profiles.proto as it is in opentelemetry-proto 1.11.0
 * (status: alpha), in binary.
 *
 * Profiles refer to entries of one dictionary by index; index 0 of each table stands for nothing.
 * Entries get their numbers when a sample first needs them, and are written at the end.
 */
#ifndef KYMO_OUTPUT_EXCHANGE_OTLP_H
#define KYMO_OUTPUT_EXCHANGE_OTLP_H

#include "output/exchange/exchange.h"
#include "output/incomplete/incomplete.h"
#include "output/protobuf.h"
#include "output/strings.h"

/* An entry's number by index of the session, and the indexes by number. */
struct otlp_table {
	uint32_t *number_of_index; /* 0: it has none yet */
	uint32_t *indexes;         /* number - 1 */
	uint32_t count;
};

struct otlp_writer {
	const struct session *session;
	struct incomplete_text incomplete; /* empty: nothing is known to be missing */
	struct protobuf_writer protobuf;
	struct string_table strings;
	struct otlp_table stacks;    /* by node */
	struct otlp_table locations; /* by frame: an address has one chain of inlined functions */
	struct otlp_table functions; /* by function */
	struct otlp_table modules;   /* by module */
	uint32_t *node_of_location;  /* number - 1 */
	uint32_t *frame_of_function; /* number - 1 */
	uint32_t *group_of_thread;
	struct otlp_table groups; /* by group; each has two attributes */
};

int otlp_dictionary_init(struct otlp_writer *writer); /* 0 or -ENOMEM */
void otlp_dictionary_deinit(struct otlp_writer *writer);
uint32_t otlp_get_string_number(struct otlp_writer *writer, const char *text);
uint32_t otlp_get_stack_number(struct otlp_writer *writer, uint32_t node);
/* The first of the two attributes of a thread: its number, and its name. */
uint32_t otlp_get_thread_attribute(struct otlp_writer *writer, uint32_t group);
void otlp_write_dictionary(struct otlp_writer *writer, unsigned field);

#endif
