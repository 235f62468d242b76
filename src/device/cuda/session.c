/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Beginning and end of CUDA tracing. CUPTI has room for one subscriber a process; who is there
 * first keeps it. Without being the subscriber the activity records of two tools would be mixed up,
 * so then nothing is recorded, and that is said.
 *
 * CUPTI hands over full buffers only; a thread of ours asks for the rest every KYMO_CUDA_FLUSH_MS
 * (50), so that _exit(), abort() and SIGKILL cost no more than the last period.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/counting.h"
#include "device/turns.h"

#define FLUSH_MS_DEFAULT 100
#define FLUSH_IDLE       20 /* periods */
#define FLUSH_WAIT_NS    500000000

#define TELLING_WAIT_S 5
#define IDLE_NS        1000000000u

enum { NOT_BEGUN, BEGINNING, ON, OFF };
static _Atomic int state;
static void *subscriber;
static int64_t clock_difference;
static bool is_without_launches;
static _Atomic uint64_t flushed_ns; /* when somebody last asked */
static _Atomic bool kernels_on, copies_on, memory_on, has_ended;
static _Atomic uint64_t context_ns; /* when the newest context was made; 0: none was */
static _Atomic bool is_awaited;
static pthread_mutex_t following = PTHREAD_MUTEX_INITIALIZER, flushing = PTHREAD_MUTEX_INITIALIZER,
		       telling = PTHREAD_MUTEX_INITIALIZER;

bool cuda_is_on(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == ON;
}

bool cuda_by_node(void)
{
	const char *asked = getenv("KYMO_CUDA_GRAPHS");

	return asked != NULL && strcmp(asked, "nodes") == 0;
}

bool cuda_without_launches(void)
{
	return is_without_launches;
}

uint64_t cuda_time(uint64_t record_time)
{
	return record_time == 0 ? 0 : record_time + (uint64_t)clock_difference;
}

static uint64_t now_for_cupti(void)
{
	return device_sink()->now();
}

/* Records on our own clock, or, where CUPTI is too old for that, the difference of its clock to
 * ours. */
static void settle_clock(const struct device_sink *sink)
{
	uint64_t best = UINT64_MAX;

	if (cupti.ActivityRegisterTimestampCallback != NULL &&
	    cupti.ActivityRegisterTimestampCallback(now_for_cupti) == CUPTI_SUCCESS)
		return;
	for (unsigned i = 0; i < 10; i++) {
		uint64_t before = sink->now(), theirs = 0, after;

		cupti.GetTimestamp(&theirs);
		after = sink->now();
		if (after - before >= best)
			continue;
		best = after - before;
		clock_difference = (int64_t)(before + best / 2 - theirs);
	}
}

static bool subscribe(const struct device_sink *sink)
{
	char holder[CUPTI_OLD_SUBSCRIBER_NAME] = "", text[256];
	struct cupti_subscriber_parameters parameters = {sizeof(parameters), "kymo", holder,
							 sizeof(holder)};
	const char *why = "unknown";
	int result;

	if (cupti.Subscribe_v2 != NULL)
		result = cupti.Subscribe_v2(&subscriber, cuda_callback, NULL, &parameters);
	else
		result = cupti.Subscribe(&subscriber, cuda_callback, NULL);
	if (result == CUPTI_SUCCESS)
		return true;
	cupti.GetResultString(result, &why);
	holder[sizeof(holder) - 1] = '\0';
	snprintf(text, sizeof(text),
		 "CUDA is not recorded: CUPTI has room for one tool, and %s%s%s has it (%s)",
		 holder[0] != '\0' ? "\"" : "", holder[0] != '\0' ? holder : "another one",
		 holder[0] != '\0' ? "\"" : "", why);
	sink->say(DEVICE_RUNTIME_CUDA, text);
	cuda_losses.conflicts++;
	return false;
}

static bool turn(_Atomic bool *is_on, bool wanted, const int *kinds, size_t count)
{
	if (atomic_exchange(is_on, wanted) == wanted)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (wanted)
			cupti.ActivityEnable(kinds[i]);
		else
			cupti.ActivityDisable(kinds[i]);
	}
	return true;
}

bool cuda_kernel_records(void *context, bool on)
{
	int result = CUPTI_SUCCESS;

	if (cupti.ActivityEnableContext == NULL || cupti.ActivityDisableContext == NULL)
		return false;
	pthread_mutex_lock(&following);
	if (!on)
		result = cupti.ActivityDisableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
	else if (atomic_load(&kernels_on))
		result = cupti.ActivityEnableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
	pthread_mutex_unlock(&following);
	return result == CUPTI_SUCCESS;
}

/* Records of graphs and of their nodes exclude each other: with both, there are those of graphs
 * alone. */
static void follow(const struct device_sink *sink)
{
	static const int kernels[] = {CUPTI_KIND_CONCURRENT_KERNEL, CUPTI_KIND_GRAPH_TRACE};
	static const int copies[] = {CUPTI_KIND_MEMCPY, CUPTI_KIND_MEMCPY_PEER, CUPTI_KIND_MEMSET};
	static const int memory[] = {CUPTI_KIND_MEMORY};

	pthread_mutex_lock(&following);
	if (turn(&kernels_on, sink->wants(DEVICE_SERVICE_KERNELS, -1), kernels,
		 cuda_by_node() ? 1 : 2))
		cuda_count_records(kernels_on);
	turn(&copies_on, sink->wants(DEVICE_SERVICE_COPIES, -1), copies, 3);
	turn(&memory_on, sink->wants(DEVICE_SERVICE_ALLOCATIONS, -1), memory, 1);
	cuda_follow_wanted(sink, subscriber);
	pthread_mutex_unlock(&following);
}

/* One at a time, so that whoever has flushed has everything. A thread of CUPTI's that waits for
 * room in a tool's buffer can hold the other one up, so nobody waits for ever. */
static bool flush_all(uint32_t flags)
{
	bool outer = cuda_inside;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FLUSH_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (outer || pthread_mutex_timedlock(&flushing, &until) != 0)
		return false;
	cuda_inside = true;
	cupti.ActivityFlushAll(flags);
	atomic_store(&flushed_ns, device_sink()->now());
	cuda_inside = outer;
	pthread_mutex_unlock(&flushing);
	return true;
}

void cuda_context_made(void)
{
	atomic_store(&context_ns, device_sink()->now());
	cuda_used(CUDA_USE_CONTEXT);
}

/* CUDA's runtime destroys its contexts when the process ends, in a function that it registers
 * somewhere between its first call and its first kernel. CUPTI crashes when it is asked to turn
 * anything off after that (CUDA 13.0, two devices). */
void cuda_used(enum cuda_use use)
{
	static _Atomic unsigned seen;

	if ((atomic_load_explicit(&seen, memory_order_relaxed) & use) == 0 &&
	    (atomic_fetch_or(&seen, use) & use) == 0 && device_sink()->end_before_runtime != NULL)
		device_sink()->end_before_runtime();
}

bool cuda_is_awaited(void)
{
	return atomic_load_explicit(&is_awaited, memory_order_relaxed);
}

void cuda_await_driver(void)
{
	if (!atomic_exchange(&is_awaited, true) && cuda_is_on())
		follow(device_sink());
}

static void tell(void)
{
	/* The process must not end while something is begun here. */
	pthread_mutex_lock(&telling);
	if (atomic_exchange(&is_awaited, false) && !atomic_load(&has_ended))
		device_sink()->counting->runtime_ready();
	pthread_mutex_unlock(&telling);
}

/* CUPTI's profilers crash when they are begun while another thread is in CUPTI, as all of the
 * program's are that make a context or load a module (libnvperf_host, CUDA 13.0). Here one of them
 * waits for it. */
void cuda_tell_ready(void)
{
	bool outer = cuda_own_call;

	cuda_own_call = true;
	tell();
	cuda_own_call = outer;
}

/* The program has made a context and then called nothing for long. */
static void tell_idle(void)
{
	uint64_t made = atomic_load(&context_ns);

	if (cuda_is_awaited() && made != 0 && cuda_agent(0) != DEVICE_NONE &&
	    device_sink()->now() - made > IDLE_NS)
		tell();
}

static void *flush_now_and_then(void *unused)
{
	const struct device_sink *sink = device_sink();
	const char *asked = getenv("KYMO_CUDA_FLUSH_MS");
	long period = asked != NULL ? strtol(asked, NULL, 10) : 0;
	struct timespec pause;
	unsigned idle = 0;

	(void)unused;
	if (period <= 0)
		period = FLUSH_MS_DEFAULT;
	pause = (struct timespec){period / 1000, period % 1000 * 1000000};
	pthread_setname_np(pthread_self(), "kymo-cuda");
	sink->own_thread();
	while (!atomic_load(&has_ended)) {
		tell_idle();
		if (cuda_follow_is_behind())
			follow(sink);
		nanosleep(&pause, NULL);
		idle = cuda_launches_waiting() != 0 || cuda_without_launches() ? FLUSH_IDLE
									       : idle + 1;
		if (idle < FLUSH_IDLE || atomic_load(&has_ended))
			continue;
		/* A tool that flushes now and then does it for us: each flush holds launches up. */
		if (sink->now() - atomic_load(&flushed_ns) < (uint64_t)period * 900000) {
			cuda_launches_sweep();
			continue;
		}
		idle = 0;
		flush_all(0);
		cuda_launches_sweep();
	}
	return NULL;
}

static void start_flushing(const struct device_sink *sink)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	sink->thread_starting();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, flush_now_and_then, NULL) == 0)
		pthread_detach(thread);
	else
		sink->say(DEVICE_RUNTIME_CUDA,
			  "no thread for periodic flushes: a crash loses what CUPTI still has");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sink->thread_started();
}

static bool begin(const struct device_sink *sink)
{
	const char *missing = cupti_load(), *calls = getenv("KYMO_GPU_CALLS");
	char text[256];

	is_without_launches = calls != NULL && strcmp(calls, "none") == 0;
	if (missing != NULL) {
		snprintf(text, sizeof(text), "CUDA is not recorded: missing %s", missing);
		sink->say(DEVICE_RUNTIME_CUDA, text);
		return false;
	}
	if (!subscribe(sink))
		return false;
	settle_clock(sink);
	if (!cuda_buffers_make() ||
	    cupti.ActivityRegisterCallbacks(cuda_request, cuda_complete) != CUPTI_SUCCESS) {
		sink->say(DEVICE_RUNTIME_CUDA,
			  "CUDA is not recorded: CUPTI refuses buffers for its records");
		cupti.Unsubscribe(subscriber);
		return false;
	}
	cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_RESOURCE_CONTEXT_CREATED);
	cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE,
			     CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING);
	cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE, CUPTI_RESOURCE_MODULE_LOADED);
	cupti.EnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE,
			     CUPTI_RESOURCE_MODULE_UNLOAD_STARTING);
	sink->runtime_ready(DEVICE_RUNTIME_CUDA, cupti.version);
	follow(sink);
	start_flushing(sink);
	return true;
}

void cuda_begin(void)
{
	const struct device_sink *sink = device_sink();
	int expected = NOT_BEGUN;

	if (sink == NULL || !atomic_compare_exchange_strong(&state, &expected, BEGINNING))
		return;
	atomic_store_explicit(&state, begin(sink) ? ON : OFF, memory_order_release);
	/* What was asked for meanwhile. */
	if (cuda_is_on())
		follow(sink);
}

static bool is_wanted(const struct device_sink *sink)
{
	return sink->wants(DEVICE_SERVICE_KERNELS, -1) || sink->wants(DEVICE_SERVICE_COPIES, -1) ||
	       sink->wants(DEVICE_SERVICE_ALLOCATIONS, -1) ||
	       sink->wants(DEVICE_SERVICE_PROGRAMS, -1) ||
	       sink->wants(DEVICE_SERVICE_CALLS_CUDA_DRIVER, -1) ||
	       sink->wants(DEVICE_SERVICE_CALLS_CUDA_RUNTIME, -1);
}

/* Who loads the tool library without kymo: the driver is there and can be traced from now on, or it
 * is told to load us when it comes. */
static void wanted_changed(const struct device_sink *sink)
{
	void *driver;
	Dl_info place;

	if (device_is_ending())
		return;
	if (cuda_is_on()) {
		follow(sink);
		return;
	}
	if (atomic_load(&state) != NOT_BEGUN || !is_wanted(sink))
		return;
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (driver != NULL) {
		dlclose(driver);
		cuda_begin();
		if (cuda_is_on()) {
			cuda_driver_is_up();
			cuda_context_made();
		}
	} else if (dladdr(&state, &place) != 0 && place.dli_fname != NULL) {
		setenv("CUDA_INJECTION64_PATH", place.dli_fname, 0);
	}
}

/* A forced flush has told all there was. What was begun before it and has no record when the next
 * one returns will have none (it was captured into a graph, or there was nothing to do), and nobody
 * waits for it. The second gives a call that is being made meanwhile the time to be over. */
static void flush(bool wait, uint64_t wait_ns)
{
	uint32_t begun = cuda_launches_newest();
	bool has_all = wait;

	(void)wait_ns;
	if (!cuda_is_on() || atomic_load(&has_ended))
		return;
	if (!cuda_inside)
		cuda_count_flush();
	if (!wait)
		flush_all(0);
	for (unsigned i = 0; i < 2 && has_all; i++)
		has_all = flush_all(CUPTI_FLUSH_FORCED);
	if (has_all)
		cuda_launches_give_up(begun);
}

/* What the thread has begun it ends, but no program waits for ever. */
static void wait_for_telling(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TELLING_WAIT_S;
	if (pthread_mutex_timedlock(&telling, &until) == 0)
		pthread_mutex_unlock(&telling);
}

static void finish(void)
{
	if (!cuda_is_on() || atomic_exchange(&has_ended, true))
		return;
	wait_for_telling();
	cuda_device_finish();
	cuda_count_finish();
	flush_all(CUPTI_FLUSH_FORCED);
	cuda_launches_close();
}

/* CUDA does not work in a child of fork; neither do we. */
static void forked(void)
{
	atomic_store(&has_ended, true);
	atomic_store(&state, OFF);
	cuda_count_forked();
	cuda_device_forked();
	turns_forked();
}

static void losses(struct device_losses *out)
{
	*out = (struct device_losses){cuda_losses.dropped, cuda_losses.unmatched,
				      cuda_losses.incomplete, cuda_losses.conflicts};
}

const struct device_backend device_backend_cuda = {
	"cuda", DEVICE_RUNTIME_CUDA, cuda_discover, wanted_changed, flush, finish, forked,
	losses, &cuda_counting};

/* What the driver calls in the library of CUDA_INJECTION64_PATH, from within cuInit(). */
__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	device_runtime_found(DEVICE_RUNTIME_CUDA);
	cuda_begin();
	return 1;
}
