/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The writers behind the table in output.c; signatures as output_format.write.
 */
#ifndef KYMO_OUTPUT_WRITERS_H
#define KYMO_OUTPUT_WRITERS_H

#include "output/output.h"

int output_text(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem);
int output_json(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem);
int output_perfetto(struct session *session, const struct output_options *options, FILE *stream,
		    struct problem *problem);
int output_folded(struct session *session, const struct output_options *options, FILE *stream,
		  struct problem *problem);
int output_regions_folded(struct session *session, const struct output_options *options,
			  FILE *stream, struct problem *problem);
int output_memory(struct session *session, const struct output_options *options, FILE *stream,
		  struct problem *problem);
int output_pprof(struct session *session, const struct output_options *options, FILE *stream,
		 struct problem *problem);
int output_coverage(struct session *session, const struct output_options *options, FILE *stream,
		    struct problem *problem);
int output_coverage_json(struct session *session, const struct output_options *options,
			 FILE *stream, struct problem *problem);
int output_lcov(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem);
int output_nccl_text(struct session *session, const struct output_options *options, FILE *stream,
		     struct problem *problem);
int output_nccl_json(struct session *session, const struct output_options *options, FILE *stream,
		     struct problem *problem);
int output_nccl_operations(struct session *session, const struct output_options *options,
			   FILE *stream, struct problem *problem);
int output_nccl_collectives(struct session *session, const struct output_options *options,
			    FILE *stream, struct problem *problem);
int output_counters_csv(struct session *session, const struct output_options *options, FILE *stream,
			struct problem *problem);
int output_device_counters_csv(struct session *session, const struct output_options *options,
			       FILE *stream, struct problem *problem);
int output_counters_json(struct session *session, const struct output_options *options,
			 FILE *stream, struct problem *problem);
int output_counters_db(struct session *session, const struct output_options *options, FILE *stream,
		       struct problem *problem);
int output_html(struct session *session, const struct output_options *options, FILE *stream,
		struct problem *problem);

#endif
