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
 *   counted.c          from a kernel that was counted to its record, which comes later
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
const char *cuda_profiler_load(void);
/* To be called before anything that needs the device. */
void cuda_profiler_begin(void);
/* What a result of theirs means; fills in the text with `what` in front. */
enum counting_status cuda_profiler_status(int result, const char *what,
					  struct counting_problem *problem);

/* ---- metrics.c ---- */

struct cuda_chip; /* what one chip has, found once */
struct cuda_metric {
	struct counting_event event;
	bool is_ratio; /* values of intervals are averaged, not added up */
};

/* 9.0 is 90; 0: not one of CUDA's devices (agents.c). */
uint16_t cuda_agent_capability(device_handle agent);
/* false: the driver is not up. */
bool cuda_agent_ordinal(device_handle agent, uint32_t *ordinal);

/* NULL: not known yet (the driver is not up), or there is no such chip; status says. */
struct cuda_chip *cuda_chip_of_agent(device_handle agent, enum counting_status *status);
struct cuda_chip *cuda_chip_by_name(const char *name, enum counting_status *status);
const char *cuda_chip_name(const struct cuda_chip *chip);
void cuda_chip_metrics(const struct cuda_chip *chip,
		       bool (*each)(void *context, const struct counting_event *event),
		       void *context);
enum counting_status cuda_chip_metric(struct cuda_chip *chip, const char *event,
				      struct cuda_metric *metric);

/* ---- counting_sets.c ---- */

struct cuda_configured { /* for one of the profilers */
	void *host;
	uint8_t *config;
	size_t config_bytes, passes;
};

enum cuda_of_time {
	CUDA_NOT_OF_TIME,
	CUDA_WITH_TIME, /* counts on while nothing runs */
	CUDA_BY_TIME,   /* something divided by the range's time */
};

struct cuda_set {
	device_handle agent;
	struct cuda_configured of[PROFILER_TYPES];
	pthread_mutex_t lock; /* around evaluations */
	uint32_t count;
	uint32_t range_time; /* which of the names is the range's time; CUDA_NO_RANGE_TIME */
	bool *is_ratio;
	enum cuda_of_time *of_time;
	const char **names; /* as CUPTI wants them, with rollup; `count` of them, maybe one more */
};
#define CUDA_NO_RANGE_TIME UINT32_MAX

enum counting_status cuda_set_make(struct cuda_chip *chip, device_handle agent,
				   const struct counting_request *requests, uint32_t count,
				   struct cuda_set **made, uint32_t *ways,
				   struct counting_problem *problem);
void cuda_set_free(void *set);
/* Values of a range or sample of an image: `count`, of ranges cuda_clocks_count(). */
int cuda_set_evaluate(struct cuda_set *set, enum profiler_type type, const uint8_t *data,
		      size_t bytes, size_t index, double *values);

/* ---- count_clocks.c ---- */

/* By the name of a metric, with or without rollup. */
enum cuda_of_time cuda_clock_kind(const char *event);
/* Adds the range's time to names of which some need it, or takes it back: it did not fit, and they
 * are told as the range has them. */
void cuda_clocks_add(struct cuda_set *set);
void cuda_clocks_drop(struct cuda_set *set);
uint32_t cuda_clocks_count(const struct cuda_set *set); /* values of a range, that one included */
/* 0: it is not known how long the kernel ran, nothing is changed. */
void cuda_clocks_correct(const struct cuda_set *set, double *values, uint64_t kernel_ns);

/* ---- count_kernels.c ---- */

struct cuda_going { /* a launch that may be counted */
	void *context, *stream;
	const void *function; /* NULL: it is a graph */
	bool is_of_thread;    /* the stream */
};

struct cuda_counting { /* of a launch, from its entry to its exit */
	struct cuda_session *session;
	struct cuda_counted *counted; /* NULL: it is not counted, but others must wait for it */
	void *stream;
	bool is_timed; /* by us: CUPTI makes no record of it */
};

device_handle cuda_context_agent(void *context);
bool cuda_counts(device_handle agent);
bool cuda_counts_any(void);
extern _Thread_local bool cuda_own_call
	__attribute__((tls_model("initial-exec"))); /* the thread calls the driver on our behalf */
/* Before a kernel or a graph goes: waits for its turn and opens its range. true: it is counted, and
 * unless it is_timed its record is to be given to cuda_counted_ran(). */
bool cuda_count_enter(struct cuda_counting *counting, const struct cuda_going *going,
		      device_handle handle, const struct device_kernel *kernel);
void cuda_count_exit(struct cuda_counting *counting, bool failed);
void cuda_count_context_gone(void *context);
void cuda_count_set_gone(const struct cuda_set *set);
void cuda_count_flush(void); /* hands over what was counted */
/* Kernel records are on or off again everywhere; for contexts that count, by themselves. */
void cuda_count_records(bool on);
void cuda_count_finish(void);
void cuda_count_forked(void);

/* ---- counted.c ---- */

struct cuda_counted {
	device_handle handle, symbol;
	struct cuda_set *set;
	void *before, *behind;  /* events of a kernel that was given up */
	uint64_t start, end;    /* around the call; its record knows better */
	_Atomic uint32_t parts; /* of its story: values, record */
	bool has_ran;
	struct device_kernel ran;
	uint64_t ran_start, ran_end;
	double *values; /* NULL: it was not counted after all */
	/* Until it is told, without a lock: */
	struct cuda_counted *next;
	enum counting_status why;
	char text[COUNTING_PROBLEM_LENGTH];
};

/* NULL: no memory. */
struct cuda_counted *cuda_counted_new(device_handle handle, device_handle symbol,
				      struct cuda_set *set);
void cuda_counted_free(struct cuda_counted *counted); /* untold; NULL does nothing */
/* What stands for it in the table of launches. */
device_handle cuda_counted_handle(const struct cuda_counted *counted);
void cuda_counted_values(struct cuda_counted *counted); /* they are there */
void cuda_counted_not(struct cuda_counted *counted, enum counting_status why, const char *text);
void cuda_counted_failed(struct cuda_counted *counted); /* it was not launched: gone */
/* Its record; ran NULL: there will be none. */
void cuda_counted_ran(device_handle handle, const struct device_kernel *ran, uint64_t start,
		      uint64_t end);

/* ---- count_device.c ---- */

enum counting_status cuda_device_start(device_handle agent, void *set, uint64_t interval_ns,
				       struct counting_problem *problem);
enum counting_status cuda_device_read(device_handle agent, double *values, size_t count,
				      uint64_t *time, struct counting_problem *problem);
void cuda_device_stop(device_handle agent);
void cuda_device_finish(void); /* stops what still counts */
void cuda_device_forked(void);

/* Whether CUPTI makes records of the context's next kernels (session.c). Where it does, it has them
 * run some instructions of its own (8 a warp, CUDA 13), which would be counted. */
bool cuda_kernel_records(void *context, bool on);

extern const struct device_counting cuda_counting;

#endif
