/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting on NVIDIA's devices, in parts:
 *
 *   metrics.c          which metrics a chip has, by CUPTI's host library, which needs no device
 *   counting_sets.c    sets of them, and how many passes they take
 *   counting.c         the table that the tool library asks
 *   count_session.c    sessions of the range profiler
 *   count_kernels.c    kernels one at a time, each within a range of a session
 *   count_times.c      when they ran
 *   count_clocks.c     clocks of a range, and rates, told for the kernel's own time
 *   profiled_kernel.c          from a kernel that was counted to its record, which comes later
 *   count_device.c     the whole device over time, by PM sampling
 */
#ifndef KYMO_DEVICE_CUDA_COUNTING_H
#define KYMO_DEVICE_CUDA_COUNTING_H

#include <pthread.h>

#include "device/counting.h"
#include "device/cuda/cuda.h"
#include "device/cuda/profiler.h"

extern struct profiler_api profiler;

/* NULL: CUPTI's profilers can be called; else what is missing. */
const char *cuda_profiler_load_or_get_missing_text(void);
/* To be called before anything that needs the device. */
void cuda_profiler_initialize_once(void);
/* What a result of theirs means; fills in the text with `what` in front. */
enum counting_status cuda_profiler_result_to_status(int result, const char *what,
						    struct counting_problem *problem);

/* ---- metrics.c ---- */

struct cuda_chip; /* what one chip has, found once */
struct cuda_metric {
	struct counting_event_info event;
	bool is_ratio; /* values of intervals are averaged, not added up */
};

/* 9.0 is 90; 0: not one of CUDA's devices (agents.c). */
uint16_t cuda_get_agent_compute_capability(device_handle agent);
/* false: the driver is not up. */
bool cuda_get_agent_ordinal(device_handle agent, uint32_t *ordinal);

/* NULL: not known yet (the driver is not up), or there is no such chip; status says. */
struct cuda_chip *cuda_chip_find_or_add_by_agent(device_handle agent, enum counting_status *status);
struct cuda_chip *cuda_chip_find_or_add_by_name(const char *name, enum counting_status *status);
const char *cuda_chip_get_name(const struct cuda_chip *chip);
void cuda_chip_for_each_metric(const struct cuda_chip *chip,
			       bool (*each)(void *context, const struct counting_event_info *event),
			       void *context);
enum counting_status cuda_chip_find_metric(struct cuda_chip *chip, const char *event,
					   struct cuda_metric *metric);

/* ---- counting_sets.c ---- */

struct cuda_profiler_config { /* for one of the profilers */
	void *host;
	uint8_t *config;
	size_t config_bytes, passes;
};

enum cuda_time_dependence {
	CUDA_TIME_INDEPENDENT,
	CUDA_GROWS_WITH_TIME, /* counts on while nothing runs */
	CUDA_DIVIDED_BY_TIME, /* something divided by the range's time */
};

struct cuda_metric_set {
	device_handle agent;
	struct cuda_profiler_config configs_by_profiler[PROFILER_TYPE_COUNT];
	pthread_mutex_t lock; /* around evaluations */
	uint32_t count;
	uint32_t range_time_name_index; /* which of the names is the range's time;
					   CUDA_NO_RANGE_TIME */
	bool *is_ratio_by_metric;
	enum cuda_time_dependence *time_dependence_by_metric;
	const char **names; /* as CUPTI wants them, with rollup; `count` of them, maybe one more */
};
#define CUDA_NO_RANGE_TIME UINT32_MAX

enum counting_status cuda_metric_set_create(struct cuda_chip *chip, device_handle agent,
					    const struct counting_event_request *requests,
					    uint32_t count, struct cuda_metric_set **made,
					    uint32_t *ways, struct counting_problem *problem);
void cuda_metric_set_free(void *set);
/* Values of a range or sample of an image: `count`, of ranges cuda_metric_set_get_value_count(). */
int cuda_metric_set_evaluate(struct cuda_metric_set *set, enum profiler_type type,
			     const uint8_t *data, size_t bytes, size_t index, double *values);

/* ---- count_clocks.c ---- */

/* By the name of a metric, with or without rollup. */
enum cuda_time_dependence cuda_metric_get_time_dependence(const char *event);
/* Adds the range's time to names of which some need it, or takes it back: it did not fit, and they
 * are reported as the range has them. */
void cuda_add_range_time_to_metric_set(struct cuda_metric_set *set);
void cuda_drop_range_time_from_metric_set(struct cuda_metric_set *set);
uint32_t cuda_metric_set_get_value_count(
	const struct cuda_metric_set *set); /* values of a range, that one included */
/* 0: it is not known how long the kernel ran, nothing is changed. */
void cuda_scale_metric_values_to_kernel_ns(const struct cuda_metric_set *set, double *values,
					   uint64_t kernel_ns);

/* ---- count_kernels.c ---- */

struct cuda_countable_launch { /* a launch that may be counted */
	void *context, *stream;
	const void *function;      /* NULL: it is a graph */
	bool is_per_thread_stream; /* the stream */
};

struct cuda_launch_counting_state { /* of a launch, from its entry to its exit */
	struct cuda_range_session *session;
	struct cuda_profiled_kernel
		*counted; /* NULL: it is not counted, but others must wait for it */
	void *stream;
	bool is_timed_by_events; /* by us: CUPTI makes no record of it */
};

device_handle cuda_get_context_agent(void *context);
bool cuda_is_counting_kernels_of_agent(device_handle agent);
bool cuda_is_counting_any_agent(void);
extern _Thread_local bool cuda_thread_in_kymo_call_flag
	__attribute__((tls_model("initial-exec"))); /* the thread calls the driver on our behalf */
/* Before a kernel or a graph goes: waits for its turn and opens its range. true: it is counted, and
 * unless it is_timed its record is to be given to cuda_profiled_kernel_add_record(). */
bool cuda_kernel_counting_begin_launch(struct cuda_launch_counting_state *counting,
				       const struct cuda_countable_launch *going,
				       device_handle handle,
				       const struct device_kernel_launch *kernel);
void cuda_kernel_counting_end_launch(struct cuda_launch_counting_state *counting, bool failed);
void cuda_kernel_counting_end_session_of_context(void *context);
void cuda_kernel_counting_drop_metric_set(const struct cuda_metric_set *set);
void cuda_kernel_counting_collect_values(void); /* hands over what was counted */
/* Kernel records are on or off again everywhere; for contexts that count, by themselves. */
void cuda_sessions_switch_kernel_records(bool on);
void cuda_kernel_counting_end_all_sessions(void);
void cuda_kernel_counting_reset_forked(void);

/* ---- profiled_kernel.c ---- */

struct cuda_profiled_kernel {
	device_handle handle, symbol;
	struct cuda_metric_set *metric_set;
	void *before, *behind;  /* events of a kernel that was given up */
	uint64_t start, end;    /* around the call; its record knows better */
	_Atomic uint32_t parts; /* of its story: values, record */
	bool has_launch_as_run;
	struct device_kernel_launch launch_as_run;
	uint64_t ran_start_ns, ran_end_ns;
	double *values; /* NULL: it was not counted after all */
	/* Until it is reported, without a lock: */
	struct cuda_profiled_kernel *next;
	enum counting_status why;
	char text[COUNTING_PROBLEM_TEXT_BYTES];
};

/* NULL: no memory. */
struct cuda_profiled_kernel *cuda_profiled_kernel_new(device_handle handle, device_handle symbol,
						      struct cuda_metric_set *set);
void cuda_profiled_kernel_free(
	struct cuda_profiled_kernel *counted); /* untold; NULL does nothing */
/* What stands for it in the table of launches. */
device_handle cuda_profiled_kernel_to_handle(const struct cuda_profiled_kernel *counted);
void cuda_profiled_kernel_mark_values_ready(
	struct cuda_profiled_kernel *counted); /* they are there */
void cuda_profiled_kernel_report_uncounted(struct cuda_profiled_kernel *counted,
					   enum counting_status why, const char *text);
void cuda_profiled_kernel_report_unlaunched(
	struct cuda_profiled_kernel *counted); /* it was not launched: gone */
/* Its record; ran NULL: there will be none. */
void cuda_profiled_kernel_add_record(device_handle handle, const struct device_kernel_launch *ran,
				     uint64_t start, uint64_t end);

/* ---- count_device.c ---- */

enum counting_status cuda_device_counting_start(device_handle agent, void *set,
						uint64_t interval_ns,
						struct counting_problem *problem);
enum counting_status cuda_device_counting_read(device_handle agent, double *values, size_t count,
					       uint64_t *time, struct counting_problem *problem);
void cuda_device_counting_stop(device_handle agent);
void cuda_device_counting_stop_all(void); /* stops what still counts */
void cuda_device_counting_reset_forked(void);

/* Whether CUPTI makes records of the context's next kernels (session.c). Where it does, it has them
 * run some instructions of its own (8 a warp, CUDA 13), which would be counted. */
bool cuda_switch_context_kernel_records(void *context, bool on);

extern const struct device_counting_backend cuda_counting;

#endif
