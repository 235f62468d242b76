/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See machine.h.
 */
#include "machine.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "common/time_units.h"
#include "core/sampler.h"
#include "fake.h"

#define STACK     (256u << 10)
#define MS_NS     1000000u
#define US_NS     1000u
#define SAMPLE_NS MS_NS
#define JITTER_NS (40 * MS_NS)
#define SLICE_NS  (3 * MS_NS)
#define START_NS  (30 * US_NS) /* until a new thread runs */
#define FOREVER   UINT64_MAX
#define SETTLE_NS (40 * MS_NS)
#define WINDOW_NS (200 * MS_NS)

enum doing { DONE, READY, RUNS, SLEEPS, WAITS };

struct context {
	ucontext_t context; /* to begin with; then _longjmp(3), which calls no kernel */
	jmp_buf place;
	bool begun;
	void *stack;
	void (*run)(void *argument);
	void *argument;
	enum doing doing;
	uint64_t until;       /* SLEEPS */
	uint64_t left, slice; /* CPU time it wants, and may have at once */
	uint64_t cpu, sampled, sample_at;
	uint64_t period, jitter_at; /* as src/core/background_work.c draws them */
	uint64_t fair;              /* CPU time by which threads are compared */
	struct machine_queue ended; /* who joins it */
	uint32_t target;
	bool in_handler;
	/* of the real thread's own */
	struct thread *block;
	struct causal_thread *state;
	uint32_t unread;
};

static struct {
	uint64_t now, random;
	jmp_buf outside;
	struct context contexts[MACHINE_THREADS], *current;
	uint32_t count, processors, point, begun;
	double jitter, scale[MACHINE_TARGETS];
	uint64_t visits;
	uint64_t latency, latencies; /* sum and count of those that have ended */
} machine = {.now = SECOND_NS, .random = 1};

/* ---- chance ---- */

static double chance(void)
{
	machine.random = machine.random * 6364136223846793005u + 1442695040888963407u;
	return (double)(machine.random >> 11) / (double)(1ull << 53);
}

/* Timers end late, and who is woken is not there at once. */
static uint64_t timer_slack(void)
{
	return (uint64_t)(52 * US_NS + 12 * US_NS * chance());
}

static uint64_t wakeup(void)
{
	return (uint64_t)(3 * US_NS + 5 * US_NS * chance());
}

/* ---- contexts ---- */

static void yield(void)
{
	struct context *self = machine.current;

	self->block = kymo_thread;
	self->state = kymo_causal_thread;
	self->unread = kymo_causal_unread;
	if (!_setjmp(self->place))
		_longjmp(machine.outside, 1);
}

static void enter(struct context *context)
{
	machine.current = context;
	kymo_thread = context->block;
	kymo_causal_thread = context->state;
	kymo_causal_unread = context->unread;
	if (!_setjmp(machine.outside)) {
		if (context->begun)
			_longjmp(context->place, 1);
		context->begun = true;
		setcontext(&context->context);
	}
	machine.current = NULL;
}

static void begin_context(void)
{
	struct context *self = machine.current;

	self->run(self->argument);
	causal_pay_delay_of_ending_thread();
	if (self->ended.count)
		machine_unblock(self->ended.threads[0]);
	self->doing = DONE;
	yield();
}

/* A new place, or that of a thread that has ended. */
static struct context *place(void)
{
	struct context *context;

	for (uint32_t i = 0; i < machine.count; i++) {
		context = &machine.contexts[i];
		if (context->doing != DONE)
			continue;
		context->block->causal_state = NULL;
		context->begun = false;
		return context;
	}
	assert_true(machine.count < MACHINE_THREADS);
	context = &machine.contexts[machine.count];
	memset(context, 0, sizeof(*context));
	context->block = machine.count++ ? fake_thread() : kymo_thread;
	context->stack = malloc(STACK);
	assert_non_null(context->stack);
	return context;
}

/* Apart from its caller, whose variables getcontext(3) would not keep. */
static __attribute__((noinline)) void prepare(struct context *context)
{
	getcontext(&context->context);
	context->context.uc_stack.ss_sp = context->stack;
	context->context.uc_stack.ss_size = STACK;
	context->context.uc_link = NULL;
	makecontext(&context->context, begin_context, 0);
}

uint32_t machine_start(void (*run)(void *argument), void *argument)
{
	struct thread *own = kymo_thread;
	struct causal_thread *state = kymo_causal_thread;
	struct context *context = place();

	kymo_thread = own;
	kymo_causal_thread = state;
	context->run = run;
	context->argument = argument;
	context->state = NULL;
	context->unread = 0;
	context->period = context->jitter_at = context->cpu = context->sampled = 0;
	context->sample_at = (uint64_t)(SAMPLE_NS * (0.1 + chance()));
	context->ended.count = 0;
	context->block->entry = (uintptr_t)run;
	prepare(context);
	if (machine.current)
		causal_pay_delay_and_init_created_thread(context->block);
	context->fair = machine.current ? machine.current->fair : 0;
	context->doing = SLEEPS;
	context->until = machine.now + (machine.current ? START_NS : 0);
	return (uint32_t)(context - machine.contexts);
}

void machine_join(uint32_t thread, uint64_t site)
{
	struct context *context = &machine.contexts[thread];
	struct causal_wait_state wait;

	causal_apply_delay_and_begin_wait(&wait);
	if (context->doing != DONE) {
		context->ended.threads[context->ended.count++] = machine_self();
		machine_block();
	}
	causal_end_wait_at_site(&wait, CAUSAL_WAKER_SESSION, site);
}

/* ---- the scheduler ---- */

static uint64_t least_fair(void)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < machine.count; i++) {
		struct context *context = &machine.contexts[i];

		if ((context->doing == RUNS || context->doing == READY) && context->fair < least)
			least = context->fair;
	}
	return least == UINT64_MAX ? 0 : least;
}

static void make_ready(struct context *context)
{
	uint64_t least = least_fair();

	context->doing = READY;
	if (context->fair + SLICE_NS / 2 < least)
		context->fair = least - SLICE_NS / 2;
}

static struct context *extreme(enum doing doing, bool largest)
{
	struct context *found = NULL;

	for (uint32_t i = 0; i < machine.count; i++) {
		struct context *context = &machine.contexts[i];

		if (context->doing == doing && (!found || (largest ? context->fair > found->fair
								   : context->fair < found->fair)))
			found = context;
	}
	return found;
}

static uint32_t running(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < machine.count; i++)
		count += machine.contexts[i].doing == RUNS;
	return count;
}

static void give_processors(void)
{
	struct context *ready, *last;

	while ((ready = extreme(READY, false))) {
		if (running() < machine.processors) {
			ready->doing = RUNS;
			ready->slice = SLICE_NS;
			continue;
		}
		last = extreme(RUNS, true);
		if (last->slice && last->fair < ready->fair + MS_NS)
			return;
		last->doing = READY;
		ready->doing = RUNS;
		ready->slice = SLICE_NS;
	}
}

static uint64_t next_event(void)
{
	uint64_t next = FOREVER;
	bool queue = extreme(READY, false) != NULL;

	for (uint32_t i = 0; i < machine.count; i++) {
		struct context *context = &machine.contexts[i];
		uint64_t at = context->doing == SLEEPS ? context->until : FOREVER;

		if (context->doing == RUNS)
			at = machine.now + (queue && context->slice < context->left
						    ? context->slice
						    : context->left);
		next = at < next ? at : next;
	}
	return next;
}

static void advance(uint64_t to)
{
	uint64_t passed = to - machine.now;

	for (uint32_t i = 0; i < machine.count; i++) {
		struct context *context = &machine.contexts[i];

		if (context->doing != RUNS)
			continue;
		context->left -= passed;
		context->cpu += passed;
		context->fair += passed;
		context->slice = context->slice > passed ? context->slice - passed : 0;
	}
	machine.now = to;
}

static void step(void)
{
	uint64_t next;

	give_processors();
	next = next_event();
	assert_true(next != FOREVER); /* all wait: the program hangs */
	advance(next);
	for (uint32_t i = 0; i < machine.count; i++) {
		struct context *context = &machine.contexts[i];

		if (context->doing == SLEEPS && context->until <= machine.now)
			make_ready(context);
		else if (context->doing == RUNS && !context->left)
			enter(context);
	}
}

static void run_for(uint64_t ns)
{
	uint64_t end = machine.now + ns;

	while (machine.now < end)
		step();
}

/* ---- what threads do ---- */

uint64_t machine_now(void)
{
	return machine.now;
}

static void take_sample(struct context *self)
{
	const uint64_t frames[] = {0x100, FAKE_CODE + 16 * self->target + 1};
	const struct sampled_stack stack = {.frames = frames, .count = 2};
	uint64_t took = self->cpu - self->sampled;

	self->sampled = self->cpu;
	if (machine.now >= self->jitter_at) {
		self->period = (uint64_t)(SAMPLE_NS * (0.5493 + 1.0986 * chance()));
		self->jitter_at = machine.now + (uint64_t)(JITTER_NS * (0.5 + chance()));
	}
	self->sample_at = self->cpu + self->period;
	self->in_handler = true;
	causal_attribute_sample(kymo_thread, &stack, took, machine.now);
	causal_pay_delay_of_sampled_thread(kymo_thread);
	self->in_handler = false;
}

static void consume(uint64_t ns)
{
	struct context *self = machine.current;

	while (ns) {
		uint64_t to_sample = self->sample_at > self->cpu ? self->sample_at - self->cpu : 0;
		uint64_t some = ns;

		if (!self->in_handler) {
			if (!to_sample) {
				take_sample(self);
				continue;
			}
			some = ns < to_sample ? ns : to_sample;
		}
		self->left = some;
		yield();
		ns -= some;
	}
}

void machine_pause(void)
{
	consume(US_NS);
}

static void sleep_until(uint64_t until)
{
	machine.current->doing = SLEEPS;
	machine.current->until = until;
	yield();
}

long machine_sleep(const struct timespec *time)
{
	sleep_until(machine.now + (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec +
		    timer_slack());
	return 0;
}

void machine_work(uint32_t target, double us)
{
	struct context *self = machine.current;
	double ns = us * US_NS * machine.scale[target];

	ns *= 1 + machine.jitter * (2 * chance() - 1);
	self->target = target;
	consume((uint64_t)ns);
	self->target = 0;
}

void machine_visit(void)
{
	machine.visits++;
	if (causal_is_active())
		causal_record_visit(machine.point);
}

/* Of the calling thread, less what it has absorbed. */
static uint64_t virtual_now(void)
{
	const struct causal_point *point = &fake_control->points[machine.begun];

	if (!causal_is_active())
		return machine.now;
	causal_record_visit(machine.begun);
	return point->ring[point->visits % CAUSAL_RING].time;
}

uint64_t machine_begin(void)
{
	return virtual_now();
}

void machine_end(uint64_t begun)
{
	machine.latency += virtual_now() - begun;
	machine.latencies++;
	machine_visit();
}

uint32_t machine_self(void)
{
	return (uint32_t)(machine.current - machine.contexts);
}

void machine_block(void)
{
	machine.current->doing = WAITS;
	yield();
}

void machine_unblock(uint32_t thread)
{
	machine.contexts[thread].doing = SLEEPS;
	machine.contexts[thread].until = machine.now + wakeup();
}

/* ---- tests ---- */

static void begin(const struct machine_test *test)
{
	fake_begin(NULL);
	causal_set_tick_constants(SECOND_NS);
	kymo_causal_rates.usable_processor_count = test->processors;
	machine.point = causal_find_or_add_point("done", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER);
	machine.begun = causal_find_or_add_point("begun", CAUSAL_POINT_BEGIN, CAUSAL_ORIGIN_USER);
	machine.latencies = 0;
	machine.processors = test->processors;
	machine.jitter = test->jitter;
	machine.random = 1;
	machine.visits = 0;
	machine.count = 0;
	for (uint32_t i = 0; i < MACHINE_TARGETS; i++)
		machine.scale[i] = 1;
}

static void end(void)
{
	for (uint32_t i = 0; i < machine.count; i++)
		free(machine.contexts[i].stack);
	fake_end(NULL);
}

static double bare_period(const struct machine_test *test, uint32_t target, double scale)
{
	uint64_t visits, start;

	begin(test);
	fake_end(NULL); /* nothing of ours */
	machine.scale[target] = scale;
	test->program();
	run_for(50 * MS_NS);
	visits = machine.visits;
	start = machine.now;
	machine.latency = machine.latencies = 0;
	run_for((uint64_t)test->windows * WINDOW_NS);
	assert_true(machine.visits > visits);
	end();
	if (machine.latencies)
		return (double)machine.latency / (double)machine.latencies;
	return (double)(machine.now - start) / (double)(machine.visits - visits);
}

double machine_truth(const struct machine_test *test, uint32_t target, uint32_t permille)
{
	return 100 * (1 - bare_period(test, target, 1 - permille / 1000.0) /
				  bare_period(test, target, 1));
}

static uint64_t time_of(uint64_t visit)
{
	const struct causal_visit *found =
		&fake_control->points[machine.point].ring[visit % CAUSAL_RING];

	assert_int_equal(found->count, visit);
	return found->time;
}

/* Adds a window's virtual time and visits. */
static void window(uint32_t target, uint32_t permille, uint64_t *time, uint64_t *visits)
{
	const struct causal_point *point = &fake_control->points[machine.point];
	uint64_t first, begin_time, end, count;

	fake_experiment(target, permille);
	run_for(SETTLE_NS);
	for (first = point->visits; point->visits == first;)
		step();
	first = point->visits;
	begin_time = time_of(first);
	machine.latency = machine.latencies = 0;
	end = machine.now + WINDOW_NS;
	while (machine.now < end || point->visits < first + 8)
		step();
	count = point->visits;
	*time += machine.latencies ? machine.latency : time_of(count) - begin_time;
	*visits += machine.latencies ? machine.latencies : count - first;
	fake_control->experiment &= ~CAUSAL_ACTIVE;
	run_for(5 * MS_NS);
}

double machine_predicted(const struct machine_test *test, uint32_t target, uint32_t permille)
{
	uint64_t time[2] = {0}, visits[2] = {0};

	begin(test);
	test->program();
	run_for(50 * MS_NS);
	for (uint32_t i = 0; i < test->windows; i++) {
		window(0, 0, &time[0], &visits[0]);
		window(target, permille, &time[1], &visits[1]);
	}
	end();
	return 100 *
	       (1 - (double)time[1] / (double)visits[1] / ((double)time[0] / (double)visits[0]));
}
