/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Exceptions in all their ways through frames that an engine may have changed: thrown and rethrown,
 * nested, kept and thrown in another thread, thread exit and cancellation, and out of a signal
 * handler (built with -fnon-call-exceptions).
 */
#include "nasty.h"
#include <csignal>
#include <exception>
#include <pthread.h>
#include <stdexcept>

static const int ROUNDS = 200;
static thread_local int destroyed;
/* Not known to compilers, which would see that some functions never return. */
static void (*volatile leave)(void *) = pthread_exit;
static volatile bool waiting = true;

struct guard {
	~guard()
	{
		destroyed++;
	}
};

extern "C" {

NASTY_KEEP int exc_throw(int depth)
{
	guard here;

	NASTY_OPAQUE();
	if (depth == 0)
		throw std::runtime_error("thrown");
	return exc_throw(depth - 1) + 1;
}

NASTY_KEEP int exc_catch(int depth)
{
	try {
		return exc_throw(depth);
	} catch (const std::runtime_error &) {
		NASTY_OPAQUE();
		return depth;
	}
}

NASTY_KEEP int exc_rethrow(int depth)
{
	try {
		return exc_throw(depth);
	} catch (...) {
		NASTY_OPAQUE();
		throw;
	}
}

NASTY_KEEP int exc_nested(int depth)
{
	try {
		return exc_rethrow(depth);
	} catch (const std::runtime_error &) {
		int inner = exc_catch(2);

		try {
			return exc_rethrow(inner);
		} catch (const std::runtime_error &outer) {
			return static_cast<int>(strlen(outer.what())) + inner;
		}
	}
}

NASTY_KEEP void exc_keep(std::exception_ptr *kept)
{
	try {
		exc_throw(5);
	} catch (...) {
		*kept = std::current_exception();
	}
}

NASTY_KEEP void *exc_elsewhere(void *kept)
{
	try {
		std::rethrow_exception(*static_cast<std::exception_ptr *>(kept));
	} catch (const std::exception &what) {
		return const_cast<char *>(what.what());
	}
}

NASTY_KEEP int exc_leave(int depth)
{
	guard here;

	NASTY_OPAQUE();
	if (depth == 0)
		leave(&destroyed);
	else
		exc_leave(depth - 1);
	return 1;
}

NASTY_KEEP int exc_wait(int depth)
{
	guard here;

	NASTY_OPAQUE();
	if (depth == 0)
		while (waiting)
			usleep(1000);
	else
		exc_wait(depth - 1);
	return 1;
}

NASTY_KEEP int exc_fault(const volatile int *address, int depth)
{
	guard here;

	NASTY_OPAQUE();
	return depth == 0 ? *address : exc_fault(address, depth - 1) + 1;
}

NASTY_KEEP int exc_from_handler(void)
{
	try {
		return exc_fault(nullptr, 3);
	} catch (int signal) {
		return signal;
	}
}
}

static int total;

static void *leaver(void *)
{
	struct last {
		~last()
		{
			__atomic_fetch_add(&total, destroyed, __ATOMIC_RELAXED);
		}
	} last;

	exc_leave(20);
	return nullptr;
}

static void *waiter(void *)
{
	struct last {
		~last()
		{
			__atomic_fetch_add(&total, destroyed, __ATOMIC_RELAXED);
		}
	} last;

	exc_wait(20);
	return nullptr;
}

static void thrown_by_signal(int signal)
{
	throw signal;
}

static void threads(void)
{
	std::exception_ptr kept;
	pthread_t thread;
	void *result;

	exc_keep(&kept);
	CHECK(pthread_create(&thread, nullptr, exc_elsewhere, &kept) == 0);
	pthread_join(thread, &result);
	nasty_say("kept: %s\n", static_cast<char *>(result));
	total = 0;
	for (int i = 0; i < 10; i++) {
		CHECK(pthread_create(&thread, nullptr, leaver, nullptr) == 0);
		pthread_join(thread, nullptr);
		CHECK(pthread_create(&thread, nullptr, waiter, nullptr) == 0);
		usleep(2000);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED);
	}
}

static void work(void)
{
	struct sigaction action = {};
	long sum = 0;

	action.sa_handler = thrown_by_signal;
	action.sa_flags = SA_NODEFER;
	sigaction(SIGSEGV, &action, nullptr);
	destroyed = 0;
	for (int i = 0; i < ROUNDS; i++)
		sum += exc_catch(i % 30) + exc_nested(i % 10) + exc_from_handler();
	nasty_say("sum %ld destroyed %d\n", sum, destroyed);
	threads();
	nasty_count("exc_catch", 2 * ROUNDS);
	nasty_count("exc_nested", ROUNDS);
	nasty_count("exc_rethrow", 2 * ROUNDS);
	nasty_count("exc_fault", 4 * ROUNDS);
	nasty_count("exc_from_handler", ROUNDS);
	nasty_count("exc_leave", 10 * 21);
	nasty_count("exc_elsewhere", 1);
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}
