/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of the outputs about NCCL, shared by the nccl_*.c files of this room.
 */
#ifndef KYMO_OUTPUT_NCCL_NCCL_H
#define KYMO_OUTPUT_NCCL_NCCL_H

#include "analysis/nccl/hang.h"
#include "analysis/nccl/join.h"
#include "analysis/nccl/nccl.h"
#include "analysis/nccl/roots.h"
#include "output/format.h"
#include "output/json_writer.h"
#include "output/output.h"

/* -ENODATA with a problem, where the session has no NCCL records. */
int nccl_require_records(const struct session *session, struct problem *problem);

/* "0-3,7" of a bitmap; "none". */
struct nccl_channel_list_text {
	char text[256];
};
struct nccl_channel_list_text nccl_channel_bitmap_to_text(uint64_t bitmap);

/* A name from a file, cut and made printable; a hash where there is none. */
struct nccl_label_text {
	char text[96];
};
struct nccl_label_text nccl_format_communicator_label(const struct nccl_data *data,
						      uint32_t communicator);
/* "rank 3" where the communicator counts as the job does, "rank 3 of the job (1 of tp1)", or, where
 * nothing says which rank of the job it is, "rank 1 of tp1". */
struct nccl_label_text nccl_format_rank_label(const struct nccl_data *data, uint32_t member);
/* The same of a rank that may have no records. */
struct nccl_label_text nccl_format_peer_label(const struct nccl_data *data, uint32_t communicator,
					      int32_t rank);
/* Its ranks are those of the job. */
bool nccl_communicator_counts_as_job(const struct nccl_data *data, uint32_t communicator);
struct nccl_label_text nccl_format_job_rank_label(const struct nccl_data *data, uint32_t job_rank);
/* "AllReduce #17", "Send #3 to rank 1". */
struct nccl_label_text nccl_format_operation_label(const struct nccl_data *data, uint32_t function,
						   const struct nccl_operation *operation);

/* Lines of at most 100 columns, broken at blanks; the first one is indented by `indent`, others by
 * two more. */
__attribute__((format(printf, 3, 4))) void nccl_print_wrapped_line(FILE *stream, unsigned indent,
								   const char *format, ...);

/* What an operation is marked with (docs/reference/nccl.md); their number. */
#define NCCL_FLAG_NAMES_OF_OPERATION_MAX 16
size_t nccl_collect_operation_flag_names(const struct nccl_operation_view *view,
					 const struct nccl_communicator_rank *member,
					 const char *ret[NCCL_FLAG_NAMES_OF_OPERATION_MAX]);

/* incomplete.c: a sentence for each thing that is missing in the records, most important first. */
void nccl_visit_incomplete_input_lines(const struct nccl_data *data,
				       void (*write)(const char *line, void *context),
				       void *context);

/* text_roots.c: what holds the job up, `most` lines of each kind; 0: all. */
void nccl_write_hang_roots(struct nccl_data *data, const struct nccl_hang_findings *hang,
			   const struct nccl_hang_roots *roots, FILE *stream, unsigned most);
/* "process 17 on node1, still runs". */
struct nccl_process_text {
	char text[192];
};
struct nccl_process_text nccl_format_process(const struct nccl_data *data, uint32_t process);

/* json_ranks.c; nccl_json_put_hang_roots(): 0 or -ENOMEM. */
void nccl_json_put_job(struct json_writer *json, const struct nccl_data *data);
void nccl_json_put_differing_calls(struct json_writer *json, const struct nccl_data *data);
void nccl_json_put_passed_waits(struct json_writer *json, const struct nccl_data *data,
				const struct nccl_joined_collectives *joined);
int nccl_json_put_hang_roots(struct json_writer *json, const struct nccl_data *data,
			     const struct nccl_hang_findings *hang);

/* text_calls.c: calls that the ranks do not agree on, `most` lines; how many were written. */
size_t nccl_write_differing_calls(const struct nccl_data *data, unsigned indent, size_t most,
				  FILE *stream);

/* text_hang.c: what was in flight, and what holds it up. 0 or -ENOMEM. `most`: lines a rank or
 * transfer; 0: all. */
int nccl_write_stuck_operations(struct nccl_data *data, const struct nccl_hang_findings *hang,
				FILE *stream, unsigned most);

#endif
