/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ran on devices: a file a process image beside its spool file
 * (`<session>/spool/<pid>-<n>.gpu`), written by libkymo-gpu as soon as records are known, so that
 * they are there after SIGKILL.
 *
 *   file   := gpu_file_header (4096 bytes) record* (up to `committed` bytes after the header)
 *   record := gpu_record_head, then what its kind has; `size` bytes in all, a multiple of 8
 *
 * Readers skip records of unknown kind by their size and stop at `committed`. Integers are little
 * endian, times ns of CLOCK_BOOTTIME. Ids of strings, agents and shapes count from 1, each is
 * written before its first use; 0 is none.
 */
#ifndef KYMO_GPU_RECORDS_H
#define KYMO_GPU_RECORDS_H

#include <stdint.h>

#define GPU_MAGIC         "KYMOGPU" /* 7 characters and the terminating zero */
#define GPU_VERSION_MAJOR 1
#define GPU_VERSION_MINOR 3
#define GPU_HEADER_SIZE   4096u

/* Why something is missing. Append only. */
enum gpu_loss {
	GPU_LOSS_DISK_FULL,   /* record: the file could not grow */
	GPU_LOSS_BUFFER,      /* record: the buffer of the tool library was full */
	GPU_LOSS_RUNTIME,     /* record: dropped by the vendor's library */
	GPU_LOSS_INCOMPLETE,  /* work that was not finished when the process ended */
	GPU_LOSS_CONFLICT,    /* another tool holds what tracing needs */
	GPU_LOSS_NOT_COUNTED, /* kernels that were to be counted, and ran uncounted */
	GPU_LOSS_READINGS,    /* readings of counters of devices that could not be had */
	GPU_LOSS_SHORTENED,   /* record: somebody shortened the file */
	GPU_LOSS_COUNT = 16
};

enum gpu_record_kind {
	GPU_RECORD_STRING = 1,
	GPU_RECORD_AGENT,
	GPU_RECORD_SHAPE,
	GPU_RECORD_KERNEL,
	GPU_RECORD_COPY,
	GPU_RECORD_CALL,
	GPU_RECORD_ALLOCATION,
	GPU_RECORD_MARKER,
	GPU_RECORD_METRIC,
	GPU_RECORD_NOTICE,
	GPU_RECORD_COUNTER,
	GPU_RECORD_COUNTED,
	GPU_RECORD_VALUES,
	GPU_RECORD_READING
};

/* CLOSED: everything was handed over. Ends without exit() leave it open. */
enum gpu_file_state { GPU_FILE_OPEN = 1, GPU_FILE_CLOSED };

struct gpu_file_header {
	char magic[8];
	uint16_t version_major, version_minor;
	uint32_t header_size;
	uint32_t pid, image;
	uint64_t process_start; /* field 22 of /proc/self/stat: as in the spool file */
	uint64_t start_boottime_ns, start_realtime_ns;
	uint64_t committed; /* bytes behind the header; stored with release order */
	uint64_t losses[GPU_LOSS_COUNT];
	uint64_t kernels, copies, calls; /* written */
	uint64_t own_cpu_ns;             /* CPU time of the library's own threads */
	uint64_t state;                  /* gpu_file_state */
	/* Since 1.1: kernels whose counters are here, kernels that the filter left out, readings */
	uint64_t counted, filtered, readings;
	uint8_t reserved[4096 - 8 * 31];
};

struct gpu_record_head {
	uint16_t kind, size;
	uint32_t id; /* of what is introduced, else as the kind says */
};

struct gpu_string { /* id: string */
	struct gpu_record_head head;
	char text[]; /* ends with a zero, padded with zeros */
};

enum gpu_agent_type { GPU_AGENT_CPU = 1, GPU_AGENT_GPU = 2 };

struct gpu_agent { /* id: agent */
	struct gpu_record_head head;
	uint32_t type;                  /* gpu_agent_type */
	uint32_t name, vendor, product; /* strings */
	uint32_t compute_units, clock_mhz;
	uint64_t memory_bytes;
	uint32_t ordinal; /* among agents of its type */
	uint32_t node;    /* among all agents; 0 before 1.1 */
};

/* One way in which a kernel was launched. */
struct gpu_shape { /* id: shape */
	struct gpu_record_head head;
	uint32_t kernel; /* string */
	uint32_t agent;
	uint32_t grid[3],
		group[3]; /* threads in all, threads of a group (0: the runtime's choice) */
	uint32_t private_bytes, group_bytes;
};

/* The call path of the launch (minor version 3): the number of a LAUNCH_PATH record in the
 * process's spool file, at most GPU_LAUNCH_PATH_LAST, or why there is none. Append only. */
enum gpu_launch_path {
	GPU_LAUNCH_PATH_NONE = 0, /* not asked for, or the launch was not seen */
	GPU_LAUNCH_PATH_LAST = 0x7fffff00,
	GPU_LAUNCH_PATH_NO_COLLECTOR, /* the collector was not active in the process */
	GPU_LAUNCH_PATH_UNKNOWN_THREAD,
	GPU_LAUNCH_PATH_NESTED,     /* launched by a signal handler, during another launch */
	GPU_LAUNCH_PATH_TOO_MANY,   /* distinct paths */
	GPU_LAUNCH_PATH_NOT_WRITTEN /* the spool file could not take the record */
};

struct gpu_kernel { /* id: shape */
	struct gpu_record_head head;
	uint64_t start, duration; /* 0, 0: it was not finished */
	uint64_t correlation;     /* of the call that launched it; 0: not known */
	uint64_t queue;
	uint32_t tid;         /* that launched it; 0: not known */
	uint32_t launch_path; /* gpu_launch_path */
};

enum gpu_direction {
	GPU_DIRECTION_OTHER,
	GPU_DIRECTION_HOST_TO_HOST,
	GPU_DIRECTION_HOST_TO_DEVICE,
	GPU_DIRECTION_DEVICE_TO_HOST,
	GPU_DIRECTION_DEVICE_TO_DEVICE,
	GPU_DIRECTION_FILL, /* memory is filled with one value; minor version 2 */
	GPU_DIRECTION_COUNT
};

struct gpu_copy { /* id: gpu_direction */
	struct gpu_record_head head;
	uint64_t start, duration;
	uint64_t correlation, bytes;
	uint32_t from, to; /* agents */
	uint32_t tid, launch_path;
};

struct gpu_call { /* id: string, the function */
	struct gpu_record_head head;
	uint64_t start, duration;
	uint64_t correlation;
	uint32_t tid;
	uint32_t runtime; /* string: "OPENCL_API", ... */
};

enum gpu_allocation_operation { GPU_ALLOCATE = 1, GPU_FREE };

struct gpu_allocation { /* id: gpu_allocation_operation */
	struct gpu_record_head head;
	uint64_t time, address, bytes, correlation;
	uint32_t agent, tid;
};

enum gpu_marker_what { GPU_MARKER_MARK = 1, GPU_MARKER_BEGIN, GPU_MARKER_END };

struct gpu_marker { /* id: gpu_marker_what */
	struct gpu_record_head head;
	uint64_t time;
	uint64_t correlation; /* the same at begin and end */
	uint32_t message;     /* string; 0 at the end */
	uint32_t tid;
};

enum gpu_metric_what {
	GPU_METRIC_POWER_W = 1,
	GPU_METRIC_TEMPERATURE_C,
	GPU_METRIC_SM_CLOCK_MHZ,
	GPU_METRIC_MEMORY_CLOCK_MHZ,
	GPU_METRIC_UTILIZATION, /* percent of time with a kernel running */
	GPU_METRIC_MEMORY_UTILIZATION,
	GPU_METRIC_MEMORY_USED, /* bytes */
	GPU_METRIC_ENERGY_J,    /* since the driver was loaded */
	GPU_METRIC_COUNT
};

struct gpu_metric { /* id: gpu_metric_what */
	struct gpu_record_head head;
	uint64_t time;
	double value;
	uint32_t device; /* number of the device as the vendor's library counts, from 0 */
	uint32_t reserved;
};

struct gpu_notice { /* id: 0 */
	struct gpu_record_head head;
	char text[];
};

/* ---- counters (since 1.1) ---- */

#define GPU_DIMENSIONS_MAX 8u

enum gpu_counter_flag { GPU_COUNTER_DERIVED = 1, GPU_COUNTER_CONSTANT = 2 };

struct gpu_dimension {
	uint32_t name; /* string: "DIMENSION_XCC", ... */
	uint32_t size;
};

struct gpu_counter { /* id: counter */
	struct gpu_record_head head;
	uint32_t name, description, block, expression; /* strings; 0: none */
	uint32_t agent, flags;                         /* gpu_counter_flag */
	uint32_t dimension_count, reserved;
	struct gpu_dimension dimensions[]; /* GPU_DIMENSIONS_MAX at most */
};

/* A kernel whose counters were read; its values follow. */
struct gpu_counted { /* id: shape */
	struct gpu_record_head head;
	uint64_t start, duration; /* as kernel */
	uint64_t correlation, queue;
	uint64_t dispatch; /* number of the launch in the process, from 1 */
	uint32_t tid, value_count;
};

struct gpu_value {
	uint32_t instance; /* position in the counter's dimensions, the last one varying fastest */
	uint32_t reserved;
	double value;
};

struct gpu_values { /* id: counter */
	struct gpu_record_head head;
	uint64_t dispatch;
	uint32_t count, reserved;
	struct gpu_value values[];
};

/* Of a device as a whole, from `start` to `end`. */
struct gpu_reading { /* id: counter */
	struct gpu_record_head head;
	uint64_t start, end;
	uint32_t count, reserved;
	struct gpu_value values[];
};

#ifdef __cplusplus
#define GPU_STATIC_ASSERT static_assert
#else
#define GPU_STATIC_ASSERT _Static_assert
#endif
GPU_STATIC_ASSERT(sizeof(struct gpu_file_header) == GPU_HEADER_SIZE, "file header is one page");
GPU_STATIC_ASSERT(sizeof(struct gpu_agent) == 48, "agent record");
GPU_STATIC_ASSERT(sizeof(struct gpu_shape) == 48, "shape record");
GPU_STATIC_ASSERT(sizeof(struct gpu_kernel) == 48, "kernel record");
GPU_STATIC_ASSERT(sizeof(struct gpu_copy) == 56, "copy record");
GPU_STATIC_ASSERT(sizeof(struct gpu_call) == 40, "call record");
GPU_STATIC_ASSERT(sizeof(struct gpu_allocation) == 48, "allocation record");
GPU_STATIC_ASSERT(sizeof(struct gpu_marker) == 32, "marker record");
GPU_STATIC_ASSERT(sizeof(struct gpu_metric) == 32, "metric record");
GPU_STATIC_ASSERT(sizeof(struct gpu_counter) == 40, "counter record");
GPU_STATIC_ASSERT(sizeof(struct gpu_counted) == 56, "counted record");
GPU_STATIC_ASSERT(sizeof(struct gpu_value) == 16, "value of a counter");
GPU_STATIC_ASSERT(sizeof(struct gpu_values) == 24, "values record");
GPU_STATIC_ASSERT(sizeof(struct gpu_reading) == 32, "reading record");

#endif
