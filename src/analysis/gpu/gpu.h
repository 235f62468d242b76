/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ran on devices (kymo/gpu_records.h): files of the session's processes, and sums by kernel
 * and by direction of copies. Single records are read again by who needs them
 * (gpu_visit_records()).
 *
 * Nothing in a file is trusted: what is no record ends the reading of its file, and is counted.
 */
#ifndef KYMO_ANALYSIS_GPU_GPU_H
#define KYMO_ANALYSIS_GPU_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/gpu/idle.h"
#include "analysis/gpu/launch_paths.h"
#include "analysis/gpu/ranges.h"
#include "analysis/gpu/steps.h"
#include "analysis/session.h"
#include "common/problem.h"
#include "kymo/gpu_records.h"

struct gpu_records_of_process {
	struct gpu_file_header header;
	char *path;
	uint8_t *records; /* whole ones only */
	size_t size;
	/* By id, from 1; NULL where there is none. They lie in `records`. */
	const char **strings;
	const struct gpu_agent **agent_by_id;
	const struct gpu_shape **kernel_shape_by_id;
	const struct gpu_counter **counters;
	uint32_t string_count, agent_count, shape_count, counter_count;
	uint64_t torn_bytes;
	uint64_t counted_record_count; /* of kinds that the header counts */
	uint64_t missing_record_count; /* that the header counted */
};

struct gpu_kernel_row {
	char *name; /* demangled */
	const char *agent_name;
	uint64_t count, total_ns, minimum_ns, maximum_ns;
	uint64_t incomplete; /* without an end */
};

struct gpu_copy_direction_sums {
	uint64_t count, bytes, total_ns;
};

/* A counter over the launches of a kernel: of each launch, all instances added up. */
struct gpu_counter_row {
	char *kernel_name; /* demangled; NULL: of the device as a whole */
	const char *agent_name, *counter_name;
	uint64_t count; /* launches, or readings */
	double sum, minimum, maximum;
	uint64_t ns; /* of the launches; of the time that readings cover */
};

struct gpu_data {
	struct gpu_records_of_process *processes;
	size_t process_count;
	struct gpu_kernel_row *kernels; /* by time, the most first */
	size_t kernel_count;
	struct gpu_copy_direction_sums copy_sums_by_direction[GPU_DIRECTION_COUNT];
	struct gpu_ranges ranges;
	struct gpu_launch_path_sums launch_paths;
	struct gpu_idle idle;
	struct gpu_steps steps;
	struct gpu_counter_row *kernel_counter_rows; /* by names of kernel, agent, counter */
	size_t kernel_counter_row_count;
	struct gpu_counter_row *device_reading_rows; /* by names of agent, counter */
	size_t device_reading_row_count;
	uint64_t kernel_record_count, copy_record_count, call_record_count, metric_record_count;
	uint64_t counted_kernel_count, device_reading_count, filtered_out_kernel_count;
	uint64_t losses[GPU_LOSS_COUNT];
	uint64_t recorder_threads_cpu_ns, torn_bytes;
	char **problems; /* a line each: files that could not be read, what the recorder had to say
			  */
	size_t problem_count;
};

/* Reads `directory`/spool. *ret is NULL where there are no files. 0 or -ENOMEM; a file that is not
 * to be read is a line in `problems`. */
int gpu_data_read_directory(const char *directory, struct gpu_data **ret, struct problem *problem);
void gpu_data_free(struct gpu_data *data);

/* One file's bytes. 0 or a negative errno: -EBADMSG no such file, -EPROTO another version. Takes
 * `bytes`, which must be malloc'ed, in any case. */
int gpu_process_parse_bytes(uint8_t *bytes, size_t size, struct gpu_records_of_process *ret);
void gpu_process_deinit(struct gpu_records_of_process *process);
/* The file at `path`; or its header alone. As above, or what reading it failed with. */
int gpu_process_read_file(const char *path, struct gpu_records_of_process *ret);
int gpu_read_file_header(const char *path, struct gpu_file_header *ret);
/* Calls `each` for every record, whose size is at least that of its kind. Non-zero ends, and is
 * given. */
int gpu_visit_records(const struct gpu_records_of_process *process,
		      int (*each)(const struct gpu_record_head *record, void *context),
		      void *context);

/* The spool file's process; MODEL_ENTRY_INDEX_NONE: it is not in the session. */
uint32_t gpu_find_process_in_session(const struct session *session,
				     const struct gpu_records_of_process *process);

/* The node of the call tree, of a symbolized session, that a launch path ends in;
 * MODEL_ENTRY_INDEX_NONE: it has none. `process`: in the session. */
uint32_t gpu_find_node_of_launch_path(const struct session *session, uint32_t process,
				      uint32_t launch_path);

/* "?" where there is none. */
const char *gpu_get_interned_string(const struct gpu_records_of_process *process, uint32_t id);
const char *gpu_get_agent_name(const struct gpu_records_of_process *process, uint32_t id);
const char *gpu_get_kernel_name_of_shape(const struct gpu_records_of_process *process,
					 uint32_t shape);
const char *gpu_get_counter_name(const struct gpu_records_of_process *process, uint32_t counter);
/* Of a copy between the host and a device: the agent that is the device. */
static inline uint32_t gpu_get_device_of_copy(const struct gpu_records_of_process *process,
					      const struct gpu_copy *copy)
{
	bool from_device = copy->from <= process->agent_count &&
			   process->agent_by_id[copy->from] != NULL &&
			   process->agent_by_id[copy->from]->type == GPU_AGENT_GPU;

	return from_device ? copy->from : copy->to;
}
/* As in the source, malloc'ed; NULL where it is no mangled name. */
char *gpu_demangle_name(const char *name);
const char *gpu_get_copy_direction_name(uint32_t direction); /* "host to device", ... */
/* The same as a piece of work: "[copy host to device]", "[fill]", ... */
const char *gpu_get_copy_work_name(uint32_t direction);
const char *gpu_get_metric_name(uint32_t metric); /* NULL: no such metric */
const char *gpu_get_metric_unit(uint32_t metric);
const char *gpu_get_loss_text(unsigned loss);

#define GPU_DATA_KIND_NAME "gpu"

extern const struct session_data_kind_operations gpu_data_kind_operations;

/* NULL: no device was recorded. */
static inline struct gpu_data *session_get_gpu_data(const struct session *session)
{
	return session_find_kind_data(session, GPU_DATA_KIND_NAME);
}

#endif
