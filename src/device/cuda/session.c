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
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/loader_state.h"
#include "device/cuda/counting.h"
#include "device/kernel_serializer.h"

#define FLUSH_PERIOD_DEFAULT_MS      100
#define IDLE_PERIODS_PER_FLUSH_COUNT 20 /* periods */
#define FLUSH_LOCK_WAIT_NS           500000000

#define READY_REPORT_WAIT_S            5
#define IDLE_AFTER_CONTEXT_CREATION_NS 1000000000u

enum { TRACING_NOT_BEGUN, TRACING_BEGINNING, TRACING_ON, TRACING_OFF };
static _Atomic int tracing_state;
static void *cupti_subscriber;
static int64_t cupti_clock_offset;
static bool launch_calls_ignored_flag;
static _Atomic uint64_t last_flush_ns; /* when somebody last asked */
static _Atomic bool kernel_records_on, copy_records_on, allocation_records_on, tracing_ended_flag;
static _Atomic uint64_t
	newest_context_creation_ns; /* when the newest context was made; 0: none was */
static _Atomic bool driver_awaited_flag;
static _Atomic bool
	graph_copy_nodes_seen_flag; /* a graph of the program has a node that copies memory */
static pthread_mutex_t enabled_services_lock = PTHREAD_MUTEX_INITIALIZER,
		       flush_lock = PTHREAD_MUTEX_INITIALIZER,
		       ready_report_lock = PTHREAD_MUTEX_INITIALIZER;

bool cuda_is_tracing(void)
{
	return atomic_load_explicit(&tracing_state, memory_order_acquire) == TRACING_ON;
}

static bool is_node_recording_requested(void)
{
	const char *asked = secure_getenv("KYMO_CUDA_GRAPHS");

	return asked != NULL && strcmp(asked, "nodes") == 0;
}

bool cuda_is_recording_graph_nodes(void)
{
	return atomic_load_explicit(&graph_copy_nodes_seen_flag, memory_order_acquire) ||
	       is_node_recording_requested();
}

bool cuda_is_ignoring_launches(void)
{
	return launch_calls_ignored_flag;
}

uint64_t cuda_convert_record_time(uint64_t record_time)
{
	return record_time == 0 ? 0 : record_time + (uint64_t)cupti_clock_offset;
}

static uint64_t read_time_for_cupti(void)
{
	return device_get_sink()->now();
}

/* Records on our own clock, or, where CUPTI is too old for that, the difference of its clock to
 * ours. */
static void set_up_cupti_clock(const struct device_sink *sink)
{
	uint64_t best = UINT64_MAX;

	if (cupti.ActivityRegisterTimestampCallback != NULL &&
	    cupti.ActivityRegisterTimestampCallback(read_time_for_cupti) == CUPTI_SUCCESS)
		return;
	for (unsigned i = 0; i < 10; i++) {
		uint64_t before = sink->now(), theirs = 0, after;

		cupti.GetTimestamp(&theirs);
		after = sink->now();
		if (after - before >= best)
			continue;
		best = after - before;
		cupti_clock_offset = (int64_t)(before + best / 2 - theirs);
	}
}

static bool subscribe_to_cupti(const struct device_sink *sink)
{
	char holder[CUPTI_PRIOR_SUBSCRIBER_NAME_BYTES] = "", text[256];
	struct cupti_subscriber_parameters parameters = {sizeof(parameters), "kymo", holder,
							 sizeof(holder)};
	const char *why = "unknown";
	int result;

	if (cupti.Subscribe_v2 != NULL)
		result = cupti.Subscribe_v2(&cupti_subscriber, cuda_handle_callback, NULL,
					    &parameters);
	else
		result = cupti.Subscribe(&cupti_subscriber, cuda_handle_callback, NULL);
	if (result == CUPTI_SUCCESS)
		return true;
	cupti.GetResultString(result, &why);
	holder[sizeof(holder) - 1] = '\0';
	snprintf(text, sizeof(text),
		 "CUDA is not recorded: CUPTI serves one tool per process, and %s%s%s uses it (%s)",
		 holder[0] != '\0' ? "\"" : "", holder[0] != '\0' ? holder : "another one",
		 holder[0] != '\0' ? "\"" : "", why);
	sink->say(DEVICE_RUNTIME_CUDA, text);
	cuda_record_loss_counts.conflicts++;
	return false;
}

/* Enables or disables the records of a service. Records of graphs and of their nodes exclude each
 * other: with both, there are those of graphs alone. True: it was not so before. */
static bool switch_service_activity_records_as_wanted(const struct device_sink *sink,
						      enum device_service_kind service,
						      _Atomic bool *is_on)
{
	bool wanted = sink->is_wanted(service, -1);

	if (atomic_exchange(is_on, wanted) == wanted)
		return false;
	for (size_t i = 0; i < cuda_activity_count; i++) {
		const struct cuda_activity_kind_entry *activity = &cuda_activity_kind_table[i];

		if (activity->service != service ||
		    (activity->kind == CUPTI_KIND_GRAPH_TRACE && cuda_is_recording_graph_nodes()))
			continue;
		if (wanted)
			cupti.ActivityEnable((int)activity->kind);
		else
			cupti.ActivityDisable((int)activity->kind);
	}
	return true;
}

bool cuda_switch_context_kernel_records(void *context, bool on)
{
	int result = CUPTI_SUCCESS;

	if (cupti.ActivityEnableContext == NULL || cupti.ActivityDisableContext == NULL)
		return false;
	pthread_mutex_lock(&enabled_services_lock);
	if (!on)
		result = cupti.ActivityDisableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
	else if (atomic_load(&kernel_records_on))
		result = cupti.ActivityEnableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
	pthread_mutex_unlock(&enabled_services_lock);
	return result == CUPTI_SUCCESS;
}

static void update_enabled_services(const struct device_sink *sink)
{
	pthread_mutex_lock(&enabled_services_lock);
	if (switch_service_activity_records_as_wanted(sink, DEVICE_SERVICE_KERNELS,
						      &kernel_records_on))
		cuda_sessions_switch_kernel_records(kernel_records_on);
	switch_service_activity_records_as_wanted(sink, DEVICE_SERVICE_COPIES, &copy_records_on);
	switch_service_activity_records_as_wanted(sink, DEVICE_SERVICE_ALLOCATIONS,
						  &allocation_records_on);
	cuda_update_enabled_callbacks(sink, cupti_subscriber);
	pthread_mutex_unlock(&enabled_services_lock);
}

/* Records of whole graphs together with records of copies make programs fail whose graphs copy
 * memory: a JAX training step ended with CUDA_ERROR_LAUNCH_FAILED in 33 of 48 runs (CUDA 13.0,
 * driver 580). Either kind alone is safe, and so are records of nodes. A graph's nodes are made
 * before it is instantiated, so that it is not recorded as a whole any more when it is. */
void cuda_graphs_switch_to_node_records(void)
{
	if (is_node_recording_requested() || atomic_exchange(&graph_copy_nodes_seen_flag, true))
		return;
	pthread_mutex_lock(&enabled_services_lock);
	if (atomic_load(&kernel_records_on))
		cupti.ActivityDisable(CUPTI_KIND_GRAPH_TRACE);
	pthread_mutex_unlock(&enabled_services_lock);
	device_get_sink()->say(
		DEVICE_RUNTIME_CUDA,
		"CUDA graphs of this program copy memory: the kernels and copies in graphs "
		"are recorded one by one, because records of whole graphs would break it");
}

/* One at a time, so that whoever has flushed has everything. A thread of CUPTI's that waits for
 * room in a tool's buffer can hold the other one up, so nobody waits for ever. */
static bool flush_activity_buffers(uint32_t flags)
{
	bool outer = cuda_thread_in_callback_flag;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += FLUSH_LOCK_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (outer || pthread_mutex_timedlock(&flush_lock, &until) != 0)
		return false;
	cuda_thread_in_callback_flag = true;
	cupti.ActivityFlushAll(flags);
	atomic_store(&last_flush_ns, device_get_sink()->now());
	cuda_thread_in_callback_flag = outer;
	pthread_mutex_unlock(&flush_lock);
	return true;
}

void cuda_handle_context_created(void)
{
	atomic_store(&newest_context_creation_ns, device_get_sink()->now());
	cuda_register_tools_end_at_use_stage(CUDA_USE_CONTEXT);
}

/* CUDA's runtime destroys its contexts when the process ends, in a function that it registers
 * somewhere between its first call and its first kernel. CUPTI crashes when it is asked to turn
 * anything off after that (CUDA 13.0, two devices). */
void cuda_register_tools_end_at_use_stage(enum cuda_use_stage use)
{
	static _Atomic unsigned seen;

	if ((atomic_load_explicit(&seen, memory_order_relaxed) & use) == 0 &&
	    (atomic_fetch_or(&seen, use) & use) == 0 &&
	    device_get_sink()->end_tools_before_runtime != NULL)
		device_get_sink()->end_tools_before_runtime();
}

bool cuda_counting_awaits_driver(void)
{
	return atomic_load_explicit(&driver_awaited_flag, memory_order_relaxed);
}

void cuda_set_counting_awaits_driver(void)
{
	if (!atomic_exchange(&driver_awaited_flag, true) && cuda_is_tracing())
		update_enabled_services(device_get_sink());
}

static void report_runtime_ready_if_awaited(void)
{
	/* The process must not end while something is begun here. */
	pthread_mutex_lock(&ready_report_lock);
	if (atomic_exchange(&driver_awaited_flag, false) && !atomic_load(&tracing_ended_flag))
		device_get_sink()->counting->runtime_ready();
	pthread_mutex_unlock(&ready_report_lock);
}

/* CUPTI's profilers crash when they are begun while another thread is in CUPTI, as all of the
 * program's are that make a context or load a module (libnvperf_host, CUDA 13.0). Here one of them
 * waits for it. */
void cuda_report_driver_ready(void)
{
	bool outer = cuda_thread_in_kymo_call_flag;

	cuda_thread_in_kymo_call_flag = true;
	report_runtime_ready_if_awaited();
	cuda_thread_in_kymo_call_flag = outer;
}

/* The program has made a context and then called nothing for long. */
static void report_ready_if_program_idle(void)
{
	uint64_t made = atomic_load(&newest_context_creation_ns);

	if (cuda_counting_awaits_driver() && made != 0 &&
	    cuda_find_agent_by_ordinal(0) != DEVICE_HANDLE_NONE &&
	    device_get_sink()->now() - made > IDLE_AFTER_CONTEXT_CREATION_NS)
		report_runtime_ready_if_awaited();
}

static void *run_flush_thread(void *unused)
{
	const struct device_sink *sink = device_get_sink();
	const char *asked = secure_getenv("KYMO_CUDA_FLUSH_MS");
	long period = asked != NULL ? strtol(asked, NULL, 10) : 0;
	struct timespec pause;
	unsigned idle = 0;

	(void)unused;
	if (period <= 0)
		period = FLUSH_PERIOD_DEFAULT_MS;
	pause = (struct timespec){period / 1000, period % 1000 * 1000000};
	pthread_setname_np(pthread_self(), "kymo-cuda");
	sink->exclude_calling_thread();
	while (!atomic_load(&tracing_ended_flag)) {
		report_ready_if_program_idle();
		if (cuda_take_callbacks_to_disable_flag())
			update_enabled_services(sink);
		nanosleep(&pause, NULL);
		idle = cuda_launches_get_in_flight_count() != 0 || cuda_is_ignoring_launches()
			       ? IDLE_PERIODS_PER_FLUSH_COUNT
			       : idle + 1;
		if (idle < IDLE_PERIODS_PER_FLUSH_COUNT || atomic_load(&tracing_ended_flag))
			continue;
		/* A tool that flushes now and then does it for us: each flush holds launches up. */
		if (sink->now() - atomic_load(&last_flush_ns) < (uint64_t)period * 900000) {
			cuda_launches_close_fully_recorded();
			continue;
		}
		idle = 0;
		flush_activity_buffers(0);
		cuda_launches_close_fully_recorded();
	}
	return NULL;
}

static void start_flush_thread(const struct device_sink *sink)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	sink->tool_thread_starting();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, run_flush_thread, NULL) == 0)
		pthread_detach(thread);
	else
		sink->say(DEVICE_RUNTIME_CUDA, "cannot start the flush thread: a crash loses the "
					       "records that CUPTI still holds");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sink->tool_thread_started();
}

static bool begin_cupti_tracing(const struct device_sink *sink)
{
	const char *missing = cupti_load_or_get_missing(), *calls = secure_getenv("KYMO_GPU_CALLS");
	char text[256];

	launch_calls_ignored_flag = calls != NULL && strcmp(calls, "none") == 0;
	if (missing != NULL) {
		snprintf(text, sizeof(text), "CUDA is not recorded: missing %s", missing);
		sink->say(DEVICE_RUNTIME_CUDA, text);
		return false;
	}
	if (!subscribe_to_cupti(sink))
		return false;
	set_up_cupti_clock(sink);
	if (!cuda_buffers_allocate() ||
	    cupti.ActivityRegisterCallbacks(cuda_provide_buffer, cuda_emit_buffer_records) !=
		    CUPTI_SUCCESS) {
		sink->say(DEVICE_RUNTIME_CUDA,
			  "CUDA is not recorded: CUPTI refuses buffers for its records");
		cupti.Unsubscribe(cupti_subscriber);
		return false;
	}
	cupti.EnableCallback(1, cupti_subscriber, CUPTI_DOMAIN_RESOURCE,
			     CUPTI_RESOURCE_CONTEXT_CREATED);
	cupti.EnableCallback(1, cupti_subscriber, CUPTI_DOMAIN_RESOURCE,
			     CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING);
	cupti.EnableCallback(1, cupti_subscriber, CUPTI_DOMAIN_RESOURCE,
			     CUPTI_RESOURCE_MODULE_LOADED);
	cupti.EnableCallback(1, cupti_subscriber, CUPTI_DOMAIN_RESOURCE,
			     CUPTI_RESOURCE_MODULE_UNLOAD_STARTING);
	cuda_graphs_find_node_type_function();
	cupti.EnableCallback(1, cupti_subscriber, CUPTI_DOMAIN_RESOURCE,
			     CUPTI_RESOURCE_GRAPH_NODE_CREATED);
	sink->runtime_ready(DEVICE_RUNTIME_CUDA, cupti.version);
	update_enabled_services(sink);
	start_flush_thread(sink);
	return true;
}

void cuda_begin_tracing_once(void)
{
	const struct device_sink *sink = device_get_sink();
	int expected = TRACING_NOT_BEGUN;

	if (sink == NULL ||
	    !atomic_compare_exchange_strong(&tracing_state, &expected, TRACING_BEGINNING))
		return;
	atomic_store_explicit(&tracing_state, begin_cupti_tracing(sink) ? TRACING_ON : TRACING_OFF,
			      memory_order_release);
	/* What was asked for meanwhile. */
	if (cuda_is_tracing())
		update_enabled_services(sink);
}

static bool sink_wants_any_cuda_service(const struct device_sink *sink)
{
	return sink->is_wanted(DEVICE_SERVICE_KERNELS, -1) ||
	       sink->is_wanted(DEVICE_SERVICE_COPIES, -1) ||
	       sink->is_wanted(DEVICE_SERVICE_ALLOCATIONS, -1) ||
	       sink->is_wanted(DEVICE_SERVICE_PROGRAMS, -1) ||
	       sink->is_wanted(DEVICE_SERVICE_CALLS_CUDA_DRIVER, -1) ||
	       sink->is_wanted(DEVICE_SERVICE_CALLS_CUDA_RUNTIME, -1);
}

static int read_loaded_object_count(struct dl_phdr_info *object, size_t size, void *count)
{
	(void)size;
	*(unsigned long long *)count = object->dlpi_adds;
	return 1;
}

/* The driver is where it was unless something was loaded since: looking for a library that is not
 * there goes through all directories of libraries. */
static bool objects_were_loaded_since_last_look(void)
{
	static _Atomic unsigned long long added_at_last_look;
	unsigned long long added = 0;

	dl_iterate_phdr(read_loaded_object_count, &added);
	return atomic_exchange(&added_at_last_look, added) != added;
}

/* Who loads the tool library without kymo: the driver is there and can be traced from now on, or it
 * is asked to load us when it comes. */
static void backend_apply_wanted_change(const struct device_sink *sink)
{
	void *driver;
	Dl_info place;

	if (device_process_is_ending())
		return;
	if (cuda_is_tracing()) {
		update_enabled_services(sink);
		return;
	}
	if (atomic_load(&tracing_state) != TRACING_NOT_BEGUN ||
	    !sink_wants_any_cuda_service(sink) || !objects_were_loaded_since_last_look())
		return;
	driver = loader_dlopen_keeping_dlerror("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (driver != NULL) {
		loader_dlclose_keeping_dlerror(driver);
		cuda_begin_tracing_once();
		if (cuda_is_tracing()) {
			cuda_register_driver_devices();
			cuda_handle_context_created();
		}
	} else if (dladdr(&tracing_state, &place) != 0 && place.dli_fname != NULL) {
		setenv("CUDA_INJECTION64_PATH", place.dli_fname, 0);
	}
}

/* A forced flush has told all there was. What was begun before it and has no record when the next
 * one returns will have none (it was captured into a graph, or there was nothing to do), and nobody
 * waits for it. The second gives a call that is being made meanwhile the time to be over. */
static void backend_flush(bool wait, uint64_t wait_ns)
{
	uint32_t begun = cuda_launches_get_newest_correlation();
	bool has_all = wait;

	(void)wait_ns;
	if (!cuda_is_tracing() || atomic_load(&tracing_ended_flag))
		return;
	if (!cuda_thread_in_callback_flag)
		cuda_kernel_counting_collect_values();
	if (!wait)
		flush_activity_buffers(0);
	for (unsigned i = 0; i < 2 && has_all; i++)
		has_all = flush_activity_buffers(CUPTI_FLUSH_FORCED);
	if (has_all)
		cuda_launches_give_up_until(begun);
}

/* What the thread has begun it ends, but no program waits for ever. */
static void wait_until_ready_report_is_over(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += READY_REPORT_WAIT_S;
	if (pthread_mutex_timedlock(&ready_report_lock, &until) == 0)
		pthread_mutex_unlock(&ready_report_lock);
}

static void backend_finish(void)
{
	if (!cuda_is_tracing() || atomic_exchange(&tracing_ended_flag, true))
		return;
	wait_until_ready_report_is_over();
	cuda_device_counting_stop_all();
	cuda_kernel_counting_end_all_sessions();
	flush_activity_buffers(CUPTI_FLUSH_FORCED);
	cuda_launches_close_all();
}

/* CUDA does not work in a child of fork; neither do we. */
static void backend_handle_fork(void)
{
	atomic_store(&tracing_ended_flag, true);
	atomic_store(&tracing_state, TRACING_OFF);
	cuda_kernel_counting_reset_forked();
	cuda_device_counting_reset_forked();
	serializer_reset_forked();
}

static void backend_read_losses(struct device_record_loss_counts *out)
{
	*out = (struct device_record_loss_counts){
		cuda_record_loss_counts.dropped, cuda_record_loss_counts.unmatched,
		cuda_record_loss_counts.incomplete, cuda_record_loss_counts.conflicts};
}

const struct device_backend device_backend_cuda = {
	"cuda",        DEVICE_RUNTIME_CUDA, cuda_report_nvml_devices, backend_apply_wanted_change,
	backend_flush, backend_finish,      backend_handle_fork,      backend_read_losses,
	&cuda_counting};

/* What the driver calls in the library of CUDA_INJECTION64_PATH, from within cuInit(). */
__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
	device_report_runtime_found(DEVICE_RUNTIME_CUDA);
	cuda_begin_tracing_once();
	return 1;
}
