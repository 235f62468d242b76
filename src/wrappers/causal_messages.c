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
#include "wrappers/causal_descriptors.h"
#include "wrappers/causal_paced.h"

/* A queue is a descriptor (mq_overview(7)): its inode tells which. */
static uint64_t hash_of_queue(mqd_t queue)
{
	struct stat status;

	if (kymo_runtime.sealed || sys_call2(SYS_fstat, queue, (long)&status))
		return 0;
	return causal_number_hash(CAUSAL_KIND_QUEUE, status.st_ino);
}

/* Who sends marks the thing, who receives its room; each waits for the other. */
#define PACED_SEND(type, symbol, thing, parameters, arguments)                                     \
	PACED_MESSAGE(type, symbol, thing, hash, causal_room(hash), parameters, arguments)
#define PACED_RECEIVE(type, symbol, thing, parameters, arguments)                                  \
	PACED_MESSAGE(type, symbol, thing, causal_room(hash), hash, parameters, arguments)

#define PACED_MESSAGE(type, symbol, thing, wakes, awaits, parameters, arguments)                   \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		struct causal_wait wait;                                                           \
		uint64_t hash;                                                                     \
		type result;                                                                       \
		if (!causal_on())                                                                  \
			return ORIGINAL(symbol) arguments;                                         \
		hash = thing;                                                                      \
		causal_before_wait(&wait);                                                         \
		causal_mark(wakes);                                                                \
		result = ORIGINAL(symbol) arguments;                                               \
		causal_after_wait_at(&wait,                                                        \
				     paced_waker(result >= 0 && causal_ended_by(awaits, &wait)),   \
				     CAUSAL_SITE);                                                 \
		return result;                                                                     \
	}

PACED_SEND(int, mq_send, hash_of_queue(queue),
	   (mqd_t queue, const char *data, size_t size, unsigned priority),
	   (queue, data, size, priority))
PACED_SEND(int, mq_timedsend, hash_of_queue(queue),
	   (mqd_t queue, const char *data, size_t size, unsigned priority,
	    const struct timespec *end),
	   (queue, data, size, priority, end))
PACED_RECEIVE(ssize_t, mq_receive, hash_of_queue(queue),
	      (mqd_t queue, char *data, size_t size, unsigned *priority),
	      (queue, data, size, priority))
PACED_RECEIVE(ssize_t, mq_timedreceive, hash_of_queue(queue),
	      (mqd_t queue, char *restrict data, size_t size, unsigned *restrict priority,
	       const struct timespec *restrict end),
	      (queue, data, size, priority, end))

#define SYSV_QUEUE(id) causal_number_hash(CAUSAL_KIND_SYSV_QUEUE, (uint64_t)(id))
PACED_SEND(int, msgsnd, SYSV_QUEUE(id), (int id, const void *message, size_t size, int flags),
	   (id, message, size, flags))
PACED_RECEIVE(ssize_t, msgrcv, SYSV_QUEUE(id),
	      (int id, void *message, size_t size, long type, int flags),
	      (id, message, size, type, flags))

/* An operation may wake and wait at once. Semaphores are of the session alone. */
PACED_WAIT(int, semop, !result, (int id, struct sembuf *operations, size_t count),
	   (id, operations, count))
PACED_WAIT(int, semtimedop, !result,
	   (int id, struct sembuf *operations, size_t count, const struct timespec *timeout),
	   (id, operations, count, timeout))

int causal_messages_add(void)
{
	static struct got_wrapper rows[] = {PACED_ROW(mq_send),    PACED_ROW(mq_timedsend),
					    PACED_ROW(mq_receive), PACED_ROW(mq_timedreceive),
					    PACED_ROW(msgsnd),     PACED_ROW(msgrcv),
					    PACED_ROW(semop),      PACED_ROW(semtimedop)};

	return got_add(TABLE(rows));
}
