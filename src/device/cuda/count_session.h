/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A context's session of the range profiler, and what of the driver is called for it. Functions
 * that take a session want its lock held, the context current and cuda_begin_kymo_calls_of_thread()
 * before, unless they say otherwise.
 */
#ifndef KYMO_DEVICE_CUDA_COUNT_SESSION_H
#define KYMO_DEVICE_CUDA_COUNT_SESSION_H

#include "device/cuda/counting.h"

#define RANGE_SESSIONS_MAX  64
#define SESSION_RANGES_MAX  64
#define SESSION_STREAMS_MAX 64

struct cuda_range_session {
	_Atomic(void *) context;
	device_handle agent;
	pthread_mutex_t lock;
	void *object;
	struct cuda_metric_set *metric_set; /* that it is configured for */
	uint8_t *counter_data;
	size_t counter_data_bytes;
	bool is_profiler_started, is_range_open; /* open: a kernel was given up within its range */
	uint32_t ranges;
	struct cuda_profiled_kernel *pending[SESSION_RANGES_MAX]; /* NULL: not counted after all */
	struct cuda_profiled_kernel *unreported_kernels,
		*last_unreported_kernel;               /* to be told when the lock is free */
	struct cuda_profiled_kernel *given_up, *ended; /* in an open range; their times are known */
	uint64_t number, last_decoded_ns;
	/* What did not work is not tried again at once. */
	enum counting_status last_failure_status;
	struct counting_problem last_failure_problem;
	uint64_t last_failure_ns;
	void *before, *behind; /* events around the kernel that is counted */
	uint64_t start_event_recorded_ns,
		kernel_launched_ns; /* when the one had been given to the driver, and the kernel */
	_Atomic bool
		has_own_kernel_record_switch; /* its kernel records are switched by themselves */
	struct {
		void *stream, *event;
		bool is_in_flight;
	} uncounted_streams[SESSION_STREAMS_MAX];
};

extern struct cuda_range_session cuda_range_sessions[RANGE_SESSIONS_MAX];

extern struct cuda_driver_functions {
	int (*EventCreate)(void **event, unsigned flags);
	int (*EventRecord)(void *event, void *stream);
	int (*EventQuery)(void *event);
	int (*FuncGetAttribute)(int *value, int attribute, const void *function);
	int (*EventElapsedTime)(float *milliseconds, void *start, void *end);
	int (*EventDestroy_v2)(void *event);
	int (*ThreadExchangeStreamCaptureMode)(int *mode);
	int (*CtxPushCurrent_v2)(void *context);
	int (*CtxPopCurrent_v2)(void **context);
} cuda_driver_functions;

/* Our own calls are no calls of the program, and do not spoil a capture. */
struct cuda_state_before_kymo_calls {
	int mode;
	bool outer;
};

struct cuda_state_before_kymo_calls cuda_begin_kymo_calls_of_thread(void);
void cuda_end_kymo_calls_of_thread(struct cuda_state_before_kymo_calls own);

/* Without the lock. NULL: there is none. cuda_session_find_or_add() makes one. */
struct cuda_range_session *session_find_by_context(const void *context);
struct cuda_range_session *cuda_session_find_or_add(void *context);
/* Takes the lock and makes the context current for the while. */
void session_call_with_context(struct cuda_range_session *session,
			       void (*act)(struct cuda_range_session *session));
/* Unlocks, and tells what is done: the tool library may ask for anything in that. */
void session_unlock_and_report_kernels(struct cuda_range_session *session);

/* Begins what the next kernel's range needs, or says why there can be none. */
enum counting_status session_prepare_for_set(struct cuda_range_session *session,
					     struct cuda_metric_set *set,
					     struct counting_problem *problem);
/* From here on the device counts: after session_prepare_for_set(), and right before the launch. */
enum counting_status session_open_range(struct cuda_range_session *session,
					struct counting_problem *problem);
int session_close_range(const struct cuda_range_session *session); /* of CUPTI's */
/* What became of `counted`; session_unlock_and_report_kernels() reports it. Values are taken over.
 */
void session_append_kernel_result(struct cuda_range_session *session,
				  struct cuda_profiled_kernel *counted, double *values,
				  enum counting_status why, const char *text);
/* Ends the session's ranges and reads their values. */
void session_collect_values(struct cuda_range_session *session);
void session_end_if_enabled(struct cuda_range_session *session);

/* ---- count_times.c: for who has the turn, without the lock ---- */

/* Before its range. true: kymo times it, CUPTI makes no record. */
bool kernel_times_prepare_if_possible(struct cuda_range_session *session,
				      struct cuda_profiled_kernel *counted,
				      const struct cuda_countable_launch *going,
				      const struct device_kernel_launch *kernel);
/* Within its range, right before the launch. false: CUPTI makes a record after all. */
bool kernel_times_record_start_event(struct cuda_range_session *session, void *stream);
/* The call has returned, before anything else is done. */
void kernel_times_set_launch_time(struct cuda_range_session *session);
void kernel_times_reenable_cupti_records(
	const struct cuda_range_session *session); /* it has been, or was refused */
bool kernel_times_record_end_event(struct cuda_range_session *session, void *stream);
/* It has ended, at `end` of our clock. */
void kernel_times_complete_kernel(const struct cuda_range_session *session,
				  struct cuda_profiled_kernel *counted, uint64_t end);
/* It is not waited for any more; with the lock. Its times are looked up when the range is closed.
 */
void kernel_times_keep_events_of_given_up_kernel(struct cuda_range_session *session,
						 struct cuda_profiled_kernel *counted);
void kernel_times_complete_given_up_kernels(struct cuda_range_session *session);

#endif
