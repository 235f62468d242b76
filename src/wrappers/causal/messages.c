/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Message queues and semaphore sets between processes (POSIX and System V) in causal profiling.
 */
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/stat.h>

#include "common/syscalls.h"
#include "wrappers/causal/descriptors.h"
#include "wrappers/causal/paced.h"

/* A queue is a descriptor (mq_overview(7)): its inode tells which. */
static uint64_t hash_posix_queue(mqd_t queue)
{
	struct stat status;

	if (process_has_seccomp_thread() || sys_call2(SYS_fstat, queue, (long)&status))
		return 0;
	return causal_hash_kind_and_number(CAUSAL_KIND_POSIX_QUEUE, status.st_ino);
}

/* Who sends marks the thing, who receives its room; each waits for the other. */
#define DEFINE_PACED_SEND(type, symbol, thing, parameters, arguments)                              \
	DEFINE_PACED_MESSAGE(type, symbol, thing, hash, causal_hash_room_to_write(hash),           \
			     parameters, arguments)
#define DEFINE_PACED_RECEIVE(type, symbol, thing, parameters, arguments)                           \
	DEFINE_PACED_MESSAGE(type, symbol, thing, causal_hash_room_to_write(hash), hash,           \
			     parameters, arguments)

#define DEFINE_PACED_MESSAGE(type, symbol, thing, wakes, awaits, parameters, arguments)            \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct causal_wait_state wait;                                                     \
		uint64_t hash;                                                                     \
		type result;                                                                       \
		if (!causal_is_active())                                                           \
			return ORIGINAL(symbol) arguments;                                         \
		hash = thing;                                                                      \
		causal_apply_delay_and_begin_wait(&wait);                                          \
		causal_publish_wakeup_to_session(wakes);                                           \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_end_wait_at_site(                                                           \
			&wait,                                                                     \
			paced_woken_by_us_to_waker_kind(                                           \
				result >= 0 && causal_wait_was_ended_by_hash(awaits, &wait)),      \
			CAUSAL_GET_CALL_SITE);                                                     \
		return result;                                                                     \
	}

DEFINE_PACED_SEND(int, mq_send, hash_posix_queue(queue),
		  (mqd_t queue, const char *data, size_t size, unsigned priority),
		  (queue, data, size, priority))
DEFINE_PACED_SEND(int, mq_timedsend, hash_posix_queue(queue),
		  (mqd_t queue, const char *data, size_t size, unsigned priority,
		   const struct timespec *end),
		  (queue, data, size, priority, end))
DEFINE_PACED_RECEIVE(ssize_t, mq_receive, hash_posix_queue(queue),
		     (mqd_t queue, char *data, size_t size, unsigned *priority),
		     (queue, data, size, priority))
DEFINE_PACED_RECEIVE(ssize_t, mq_timedreceive, hash_posix_queue(queue),
		     (mqd_t queue, char *restrict data, size_t size, unsigned *restrict priority,
		      const struct timespec *restrict end),
		     (queue, data, size, priority, end))

#define COMPUTE_SYSV_QUEUE_HASH(id)                                                                \
	causal_hash_kind_and_number(CAUSAL_KIND_SYSV_QUEUE, (uint64_t)(id))
DEFINE_PACED_SEND(int, msgsnd, COMPUTE_SYSV_QUEUE_HASH(id),
		  (int id, const void *message, size_t size, int flags), (id, message, size, flags))
DEFINE_PACED_RECEIVE(ssize_t, msgrcv, COMPUTE_SYSV_QUEUE_HASH(id),
		     (int id, void *message, size_t size, long type, int flags),
		     (id, message, size, type, flags))

/* An operation may wake and wait at once. Semaphores are of the session alone. */
DEFINE_PACED_WAIT(int, semop, !result, (int id, struct sembuf *operations, size_t count),
		  (id, operations, count))
DEFINE_PACED_WAIT(int, semtimedop, !result,
		  (int id, struct sembuf *operations, size_t count, const struct timespec *timeout),
		  (id, operations, count, timeout))

int causal_add_message_wrappers(void)
{
	static struct got_wrapper rows[] = {
		PACED_TABLE_ROW(mq_send),    PACED_TABLE_ROW(mq_timedsend),
		PACED_TABLE_ROW(mq_receive), PACED_TABLE_ROW(mq_timedreceive),
		PACED_TABLE_ROW(msgsnd),     PACED_TABLE_ROW(msgrcv),
		PACED_TABLE_ROW(semop),      PACED_TABLE_ROW(semtimedop)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}
