/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ran on devices (kymo/gpu_records.h): files of the session's processes, and sums by kernel
 * and by direction of copies. Single records are read again by who needs them (gpu_each()).
 *
 * Nothing in a file is trusted: what is no record ends the reading of its file, and is counted.
 */
#ifndef KYMO_ANALYSIS_GPU_H
#define KYMO_ANALYSIS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"
#include "kymo/gpu_records.h"

struct gpu_process {
	struct gpu_file_header header;
	char *path;
	uint8_t *records; /* whole ones only */
	size_t size;
	/* By id, from 1; NULL where there is none. They lie in `records`. */
	const char **strings;
	const struct gpu_agent **agents;
	const struct gpu_shape **shapes;
	const struct gpu_counter **counters;
	uint32_t string_count, agent_count, shape_count, counter_count;
	uint64_t torn_bytes;
};

struct gpu_kernel_row {
	char *name; /* demangled */
	const char *agent;
	uint64_t count, total_ns, minimum_ns, maximum_ns;
	uint64_t incomplete; /* without an end */
};

struct gpu_copy_row {
	uint64_t count, bytes, total_ns;
};

/* A counter over the launches of a kernel: of each launch, all instances added up. */
struct gpu_count_row {
	char *kernel; /* demangled; NULL: of the device as a whole */
	const char *agent, *counter;
	uint64_t count; /* launches, or readings */
	double sum, minimum, maximum;
	uint64_t ns; /* of the launches; of the time that readings cover */
};

struct gpu_data {
	struct gpu_process *processes;
	size_t process_count;
	struct gpu_kernel_row *kernels; /* by time, the most first */
	size_t kernel_count;
	struct gpu_copy_row copies[GPU_DIRECTION_COUNT];
	struct gpu_count_row *counts; /* by names of kernel, agent, counter */
	size_t count_rows;
	struct gpu_count_row *readings; /* by names of agent, counter */
	size_t reading_rows;
	uint64_t kernel_records, copy_records, call_records, metric_records;
	uint64_t counted_records, reading_records, filtered_kernels;
	uint64_t losses[GPU_LOSS_COUNT];
	uint64_t own_cpu_ns, torn_bytes;
	char **problems; /* a line each: files that could not be read, what the recorder had to say
			  */
	size_t problem_count;
};

/* Reads `directory`/spool. *ret is NULL where there are no files. 0 or -ENOMEM; a file that is not
 * to be read is a line in `problems`. */
int gpu_open(const char *directory, struct gpu_data **ret, struct problem *problem);
void gpu_close(struct gpu_data *data);

/* One file's bytes. 0 or a negative errno: -EBADMSG no such file, -EPROTO another version. Takes
 * `bytes`, which must be malloc'ed, in any case. */
int gpu_process_read(uint8_t *bytes, size_t size, struct gpu_process *ret);
void gpu_process_deinit(struct gpu_process *process);
/* The file at `path`; or its header alone. As above, or what reading it failed with. */
int gpu_process_open(const char *path, struct gpu_process *ret);
int gpu_header_read(const char *path, struct gpu_file_header *ret);
/* Calls `each` for every record, whose size is at least that of its kind. Non-zero ends, and is
 * given. */
int gpu_each(const struct gpu_process *process,
	     int (*each)(const struct gpu_record_head *record, void *context), void *context);

/* "?" where there is none. */
const char *gpu_string(const struct gpu_process *process, uint32_t id);
const char *gpu_agent_name(const struct gpu_process *process, uint32_t id);
const char *gpu_kernel_name(const struct gpu_process *process, uint32_t shape);
const char *gpu_counter_name(const struct gpu_process *process, uint32_t counter);
/* As in the source, malloc'ed; NULL where it is no mangled name. */
char *gpu_demangled(const char *name);
const char *gpu_direction_name(uint32_t direction); /* "host to device", ... */
const char *gpu_metric_name(uint32_t metric);       /* NULL: no such metric */
const char *gpu_metric_unit(uint32_t metric);
const char *gpu_loss_explained(unsigned loss);

#endif
