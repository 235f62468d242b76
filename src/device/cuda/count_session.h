/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A context's session of the range profiler, and what of the driver is called for it. Functions
 * that take a session want its lock held, the context current and own_begin() before, unless they
 * say otherwise.
 */
#ifndef KYMO_DEVICE_CUDA_COUNT_SESSION_H
#define KYMO_DEVICE_CUDA_COUNT_SESSION_H

#include "device/cuda/counting.h"

#define SESSIONS_MAX 64
#define RANGES_MAX   64
#define STREAMS_MAX  64

struct cuda_session {
	_Atomic(void *) context;
	device_handle agent;
	pthread_mutex_t lock;
	void *object;
	struct cuda_set *set; /* that it is configured for */
	uint8_t *data;
	size_t data_bytes;
	bool is_started, is_open; /* open: a kernel was given up within its range */
	uint32_t ranges;
	struct cuda_counted *pending[RANGES_MAX]; /* NULL: not counted after all */
	struct cuda_counted *done, *done_last;    /* to be told when the lock is free */
	struct cuda_counted *given_up, *ended;    /* in an open range; their times are known */
	uint64_t number, decoded_ns;
	/* What did not work is not tried again at once. */
	enum counting_status failed;
	struct counting_problem failure;
	uint64_t failed_ns;
	void *before, *behind;       /* events around the kernel that is counted */
	uint64_t recorded, launched; /* when the one had been given to the driver, and the kernel */
	_Atomic bool is_switched;    /* its kernel records are switched by themselves */
	struct {
		void *stream, *event;
		bool is_in_flight;
	} passing[STREAMS_MAX];
};

extern struct cuda_session cuda_sessions[SESSIONS_MAX];

extern struct session_driver {
	int (*EventCreate)(void **event, unsigned flags);
	int (*EventRecord)(void *event, void *stream);
	int (*EventQuery)(void *event);
	int (*FuncGetAttribute)(int *value, int attribute, const void *function);
	int (*EventElapsedTime)(float *milliseconds, void *start, void *end);
	int (*EventDestroy_v2)(void *event);
	int (*ThreadExchangeStreamCaptureMode)(int *mode);
	int (*CtxPushCurrent_v2)(void *context);
	int (*CtxPopCurrent_v2)(void **context);
} session_driver;

/* Our own calls are no calls of the program, and do not spoil a capture. */
struct session_own {
	int mode;
	bool outer;
};

struct session_own session_own_begin(void);
void session_own_end(struct session_own own);

/* Without the lock. NULL: there is none. session_of() makes one. */
struct cuda_session *session_find(const void *context);
struct cuda_session *session_of(void *context);
/* Takes the lock and makes the context current for the while. */
void session_with_context(struct cuda_session *session, void (*act)(struct cuda_session *session));
/* Unlocks, and tells what is done: the tool library may ask for anything in that. */
void session_unlock_and_tell(struct cuda_session *session);

/* Begins what the next kernel's range needs, or says why there can be none. */
enum counting_status session_ready(struct cuda_session *session, struct cuda_set *set,
				   struct counting_problem *problem);
/* From here on the device counts: after session_ready(), and right before the launch. */
enum counting_status session_open_range(struct cuda_session *session,
					struct counting_problem *problem);
int session_close_range(const struct cuda_session *session); /* of CUPTI's */
/* What became of `counted`; its story is told by session_unlock_and_tell(). Values are taken over.
 */
void session_is_done(struct cuda_session *session, struct cuda_counted *counted, double *values,
		     enum counting_status why, const char *text);
/* Ends the session's ranges and reads their values. */
void session_collect(struct cuda_session *session);
void session_end(struct cuda_session *session);

/* ---- count_times.c: for who has the turn, without the lock ---- */

/* Before its range. true: kymo times it, CUPTI makes no record. */
bool times_prepare(struct cuda_session *session, struct cuda_counted *counted,
		   const struct cuda_going *going, const struct device_kernel *kernel);
/* Within its range, right before the launch. false: CUPTI makes a record after all. */
bool times_before(struct cuda_session *session, void *stream);
/* The call has returned, before anything else is done. */
void times_returned(struct cuda_session *session);
void times_launched(const struct cuda_session *session); /* it has been, or was refused */
bool times_behind(struct cuda_session *session, void *stream);
/* It has ended, at `end` of our clock. */
void times_of(const struct cuda_session *session, struct cuda_counted *counted, uint64_t end);
/* It is not waited for any more; with the lock. Its times are looked up when the range is closed.
 */
void times_give_up(struct cuda_session *session, struct cuda_counted *counted);
void times_of_given_up(struct cuda_session *session);

#endif
