// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Leaves functions in all the ways that need an unwinder, and says what happened. Output does not
// depend on addresses, so that two runs can be compared.
//
// usage: unwound                 three rounds
//        unwound until-asked     rounds until SIGTERM, each of which has to say the same
//        unwound sit             waits in a callback, for debuggers
//        unwound throw N DEPTH   the time that throwing through DEPTH functions takes, in ns
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define KEEP() __asm__ volatile("" ::: "memory")

static int cleaned;
static volatile sig_atomic_t asked; // to end

struct guard {
	int weight;
	explicit guard(int given) : weight(given)
	{
	}
	~guard()
	{
		cleaned += weight;
	}
};

NOINLINE static void leave(int kind)
{
	KEEP();
	if (kind == 0)
		throw std::runtime_error("thrown");
	if (kind == 1)
		pthread_exit((void *)0x11);
	if (kind == 2)
		for (;;)
			pthread_testcancel();
	KEEP();
}

NOINLINE static int descend(int depth, int kind)
{
	guard held(1);
	int result;
	KEEP();
	if (!depth) {
		leave(kind);
		return 0;
	}
	result = descend(depth - 1, kind) + 1;
	KEEP();
	return result;
}

NOINLINE static int plain(int depth)
{
	int result;
	KEEP();
	if (!depth)
		throw depth;
	result = plain(depth - 1) + 1;
	KEEP();
	return result;
}

NOINLINE static std::string rethrown()
{
	try {
		try {
			descend(5, 0);
		} catch (...) {
			guard held(100);
			throw;
		}
	} catch (const std::exception &error) {
		return error.what();
	}
	return "none";
}

NOINLINE static std::string nested()
{
	std::string text;
	try {
		descend(3, 0);
	} catch (const std::exception &error) {
		try {
			descend(2, 0);
		} catch (const std::exception &inner) {
			text = std::string(error.what()) + "+" + inner.what();
		}
	}
	return text;
}

NOINLINE static std::exception_ptr kept()
{
	try {
		descend(4, 0);
	} catch (...) {
		return std::current_exception();
	}
	return nullptr;
}

NOINLINE static std::string pointer()
{
	std::exception_ptr held = kept();
	try {
		descend(1, 9);
		std::rethrow_exception(held);
	} catch (const std::exception &error) {
		return error.what();
	}
	return "none";
}

NOINLINE static bool filtered(int depth)
{
	try {
		if (depth)
			return filtered(depth - 1);
		throw 3;
	} catch (const char *) {
		return false;
	}
}

NOINLINE static bool passed()
{
	try {
		return filtered(20);
	} catch (int number) {
		return number == 3;
	}
}

static void *thread_exits(void *)
{
	descend(10, 1);
	return nullptr;
}

static void *thread_waits(void *)
{
	descend(10, 2);
	return nullptr;
}

static jmp_buf back;

NOINLINE static void jump(int depth)
{
	KEEP();
	if (!depth && !asked)
		longjmp(back, 1);
	if (depth)
		jump(depth - 1);
	KEEP();
}

NOINLINE static int jumps()
{
	volatile int count = 0;
	while (count < 1000) {
		count = count + 1;
		if (!setjmp(back))
			jump(count % 50);
	}
	return count;
}

// Addresses as offsets in their objects.
struct frames {
	void *list[256];
	int count;

	std::string text() const
	{
		std::string text = std::to_string(count);
		for (int i = 0; i < count; i++) {
			Dl_info info;
			char number[40];
			if (!dladdr(list[i], &info))
				return text + " nowhere";
			snprintf(number, sizeof(number), " %zx",
				 (size_t)((char *)list[i] - (char *)info.dli_fbase));
			text += number;
		}
		return text;
	}
};

static frames seen;

static _Unwind_Reason_Code see(struct _Unwind_Context *context, void *)
{
	if (_Unwind_GetIP(context))
		seen.list[seen.count++] = (void *)_Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void interrupted(int)
{
	seen.count = backtrace(seen.list, 256);
}

NOINLINE static int look(int depth, int how)
{
	int result;
	KEEP();
	if (!depth) {
		seen.count = 0;
		if (how == 0)
			seen.count = backtrace(seen.list, 256);
		else if (how == 1)
			seen.count = backtrace(seen.list, 9);
		else if (how == 2)
			_Unwind_Backtrace(see, nullptr);
		else
			raise(SIGUSR1);
		KEEP();
		return seen.count;
	}
	result = look(depth - 1, how);
	KEEP();
	return result;
}

NOINLINE static std::string looked()
{
	std::string text;
	for (int how = 0; how < 4; how++) {
		look(10, how);
		text += " [" + seen.text() + "]";
	}
	return text;
}

static double now()
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int measure(int rounds, int depth)
{
	double best = 1e18;
	for (int turn = 0; turn < 5; turn++) {
		double start = now();
		for (int i = 0; i < rounds; i++) {
			try {
				plain(depth);
			} catch (int) {
			}
		}
		double spent = (now() - start) / rounds;
		best = spent < best ? spent : best;
	}
	printf("%.0f\n", best);
	return 0;
}

static std::string one_round()
{
	pthread_t thread;
	void *result;
	std::string text;

	cleaned = 0;
	text += "rethrown " + rethrown() + "\nnested " + nested() + "\npointer " + pointer();
	text += "\npassed " + std::to_string(passed());
	pthread_create(&thread, nullptr, thread_exits, nullptr);
	pthread_join(thread, &result);
	text += "\nexit " + std::to_string((size_t)result);
	pthread_create(&thread, nullptr, thread_waits, nullptr);
	usleep(5000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	text += "\ncanceled " + std::to_string(result == PTHREAD_CANCELED);
	text += "\njumps " + std::to_string(jumps());
	text += "\nlooked" + looked();
	return text + "\ncleaned " + std::to_string(cleaned) + "\n";
}

static void ask(int)
{
	asked = 1;
}

static int until_asked()
{
	std::string first, text;

	signal(SIGTERM, ask);
	while (!asked) {
		text = one_round();
		if (first.empty())
			first = text;
		if (text != first && !asked) {
			printf("%snot\n%s", text.c_str(), first.c_str());
			return 1;
		}
	}
	puts("unwound: OK");
	return 0;
}

NOINLINE static int sit(int depth)
{
	int result;
	KEEP();
	if (!depth) {
		while (!asked)
			pause();
		return 0;
	}
	result = sit(depth - 1) + 1;
	KEEP();
	return result;
}

static int compare(const void *, const void *)
{
	return sit(3);
}

int main(int count, char **arguments)
{
	std::string what = count > 1 ? arguments[1] : "";

	signal(SIGUSR1, interrupted);
	if (what == "throw" && count == 4)
		return measure(atoi(arguments[2]), atoi(arguments[3]));
	if (what == "until-asked")
		return until_asked();
	if (what == "sit") {
		int numbers[2] = {2, 1};
		qsort(numbers, 2, sizeof(int), compare);
	}
	for (int round = 0; round < 3; round++)
		fputs(one_round().c_str(), stdout);
	return 0;
}
