/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of the outputs about NCCL, shared by the nccl_*.c files of this room.
 */
#ifndef KYMO_OUTPUT_NCCL_H
#define KYMO_OUTPUT_NCCL_H

#include "analysis/nccl.h"
#include "analysis/nccl_hang.h"
#include "output/format.h"
#include "output/json_writer.h"
#include "output/output.h"

/* -ENODATA with a problem, where the session has no NCCL records. */
int nccl_check(const struct session *session, struct problem *problem);

/* "0-3,7" of a bitmap; "none". */
struct nccl_channels {
	char text[256];
};
struct nccl_channels nccl_channels_text(uint64_t bitmap);

/* A name from a file, cut and made printable; a hash where there is none. */
struct nccl_label {
	char text[96];
};
struct nccl_label nccl_team_label(const struct nccl_data *data, uint32_t team);
/* "AllReduce #17", "Send #3 to rank 1". */
struct nccl_label nccl_operation_label(const struct nccl_data *data, uint32_t function,
				       const struct nccl_operation *operation);

/* Lines of at most 100 columns, broken at blanks; the first one is indented by `indent`, others by
 * two more. */
__attribute__((format(printf, 3, 4))) void nccl_line(FILE *stream, unsigned indent,
						     const char *format, ...);

/* What an operation is marked with (docs/nccl.md); their number. */
#define NCCL_MARKS 16
size_t nccl_marks(const struct nccl_view *view, const struct nccl_member *member,
		  const char *ret[NCCL_MARKS]);

/* nccl_text_hang.c: what was in flight. `most`: lines a rank or transfer; 0: all. */
void nccl_write_hang(struct nccl_data *data, const struct nccl_hang *hang, FILE *stream,
		     unsigned most);

#endif
