/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See plugin.h. The first communicator of the process begins the recording; nothing of it is ever
 * taken down again: NCCL may unload its plugin while communicators live (the library stays, -z
 * nodelete), finalize may never come, and events come after it.
 */
#include "nccl/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/loader.h"
#include "common/rank.h"
#include "nccl/clock.h"
#include "nccl/helper.h"
#include "nccl/keeper.h"
#include "nccl/log.h"
#include "nccl/names.h"
#include "nccl/options.h"
#include "nccl/session.h"

static pthread_mutex_t plugin_lock = PTHREAD_MUTEX_INITIALIZER;
static enum { RECORDING_NOT_TRIED, RECORDING_ON, RECORDING_OFF } recording_status;
static bool is_child_of_recording_process; /* of a process that records */
/* Context of communicators while nothing is recorded: NULL would make NCCL before 2.28 crash. */
static char no_recording_context_placeholder;

/* ---- fork ---- */

static void lock_before_fork(void)
{
	pthread_mutex_lock(&plugin_lock);
	helper_lock_before_fork();
}

static void unlock_after_fork(void)
{
	helper_unlock_after_fork();
	pthread_mutex_unlock(&plugin_lock);
}

/* The file is the parent's, and the own thread is not here. */
static void stop_recording_in_child(void)
{
	atomic_store(&recorder_current_mode, 0);
	is_child_of_recording_process = recording_status == RECORDING_ON;
	recording_status = recording_status == RECORDING_ON ? RECORDING_OFF : recording_status;
	store_detach_from_file();
	keeper_forget_after_fork();
	call_trace_turn_off();
	unlock_after_fork();
}

/* ---- who and where ---- */

static void read_first_line(const char *path, char *ret, size_t size)
{
	FILE *in = fopen(path, "re");

	if (in && fgets(ret, (int)size, in))
		ret[strcspn(ret, "\n")] = 0;
	if (in)
		fclose(in);
}

/* Field 22 of /proc/self/stat; the second one is in parentheses and may hold anything. */
static uint64_t read_process_start_ticks(void)
{
	char text[1024] = "", *at;
	unsigned field = 2;

	read_first_line("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')');
	while (at && field < 22) {
		at = strchr(at + 1, ' ');
		field++;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

static int read_environment_integer(const char *name, int otherwise)
{
	const char *value = secure_getenv(name);

	return value && *value >= '0' && *value <= '9' ? atoi(value) : otherwise;
}

static void write_job_to_header(struct nccl_file_header *header)
{
	static const char *const local[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
					    "MPI_LOCALRANKID", "SLURM_LOCALID"};
	static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
					   "TORCHELASTIC_RUN_ID"};
	struct process_rank rank = {0};
	bool known = rank_read_from_environment(environ, &rank);

	/* torchrun */
	header->world_rank = read_environment_integer("RANK", known ? (int)rank.rank : -1);
	header->world_size =
		read_environment_integer("WORLD_SIZE", known && rank.size ? (int)rank.size : -1);
	header->local_rank = -1;
	for (size_t i = 0; i < ARRAY_SIZE(local) && header->local_rank < 0; i++)
		header->local_rank = read_environment_integer(local[i], -1);
	for (size_t i = 0; i < ARRAY_SIZE(jobs) && !header->job[0]; i++) {
		const char *value = secure_getenv(jobs[i]);

		if (value)
			strncpy(header->job, value, sizeof(header->job) - 1);
	}
}

/* The library that called us says its version. */
static void write_nccl_version_to_header(struct nccl_file_header *header, const void *caller)
{
	int (*get_version)(int *version);
	int version = 0;
	Dl_info info;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return;
	header->rccl = strstr(info.dli_fname, "rccl") != NULL;
	*(void **)&get_version =
		loader_find_symbol(LOADER_SCOPE_OWN_OBJECT, caller, "ncclGetVersion");
	if (get_version && !get_version(&version))
		header->nccl_version = (uint32_t)version;
}

static void write_file_header(const struct plugin_init_arguments *init, uint64_t hz)
{
	struct nccl_file_header *header = store.header;
	ssize_t length;

	memcpy(header->magic, NCCL_FILE_MAGIC, sizeof(header->magic));
	header->version_major = NCCL_FILE_VERSION_MAJOR;
	header->version_minor = NCCL_FILE_VERSION_MINOR;
	header->header_size = NCCL_HEADER_SIZE;
	header->pid = (uint32_t)getpid();
	header->parent_pid = (uint32_t)getppid();
	header->process_start = read_process_start_ticks();
	header->tick_clock = kymo_ticks_are_ns;
	header->tick_hz = hz;
	header->api = init->api;
	header->mask_default = !options.has_events_option;
	header->ring = store.is_ring;
	header->size_limit = options.file_limit_bytes;
	header->stall_limit_ns = options.stall_limit_ns;
	header->gpu_clock_hz = options.gpu_clock_hz;
	gethostname(header->host, sizeof(header->host) - 1);
	read_first_line("/proc/sys/kernel/random/boot_id", header->boot_id,
			sizeof(header->boot_id));
	length = readlink("/proc/self/exe", header->program, sizeof(header->program) - 1);
	if (length < 0)
		header->program[0] = 0;
	write_job_to_header(header);
	write_nccl_version_to_header(header, init->caller);
	RELAXED_STORE(header->state, NCCL_FILE_OPEN);
}

/* ---- the beginning ---- */

static void open_call_trace(void)
{
	int failed = call_trace_open(options.call_trace_path);

	if (!failed)
		return;
	log_problem_to_nccl_and_stderr("KYMO_NCCL_CALL_TRACE: '%s' cannot be written: %s",
				       options.call_trace_path, strerror(-failed));
	helper_write_first_problem_to_header("the call trace cannot be written (NCCL_CALL_TRACE)");
}

static int begin_recording(const struct plugin_init_arguments *init, char *directory, size_t size)
{
	uint64_t hz = ticks_init_and_get_hz();
	int result = session_make_spool_directory(directory, size);

	if (!result)
		result = store_create(directory, options.file_limit_bytes, options.ring);
	if (result)
		return result;
	write_file_header(init, hz);
	names_write_predefined();
	result = communicators_allocate_table();
	if (result)
		return result;
	if (options.is_file_limit_adjusted)
		helper_write_first_problem_to_header(
			"the file does not have the requested size (NCCL_SIZE takes 4M to 16G)");
	if (*options.call_trace_path)
		open_call_trace();
	/* Before the thread, which ends when it is off. */
	atomic_store(&recorder_current_mode, call_trace_is_on() ? RECORDER_ON_WITH_CALL_TRACE
								: RECORDER_ON_WITHOUT_CALL_TRACE);
	result = helper_start_thread();
	if (result)
		atomic_store(&recorder_current_mode, 0);
	return result;
}

static void start_recording_if_enabled(const struct plugin_init_arguments *init)
{
	static char directory[PATH_MAX];
	int result;

	options_read_environment();
	if (!options.is_enabled) {
		log_info_to_nccl("nothing is recorded: KYMO_ENABLED is off");
		recording_status = RECORDING_OFF;
		return;
	}
	result = begin_recording(init, directory, sizeof(directory));
	if (result) {
		log_problem_to_nccl_and_stderr("nothing is recorded: '%s': %s", directory,
					       strerror(-result));
		recording_status = RECORDING_OFF;
		return;
	}
	recording_status = RECORDING_ON;
	pthread_atfork(lock_before_fork, unlock_after_fork, stop_recording_in_child);
	log_info_to_nccl(
		"records events 0x%x of NCCL %u through version %u of the plugin API in %s",
		options_get_event_mask(init->api), RELAXED_LOAD(store.header->nccl_version),
		init->api, store.file.path);
}

/* Not from finalize: many programs end without it. */
__attribute__((destructor)) static void run_last_helper_round_at_exit(void)
{
	helper_run_last_round();
}

static void add_communicator(const struct plugin_init_arguments *init)
{
	struct communicator_identity identity = {
		.name = init->name,
		.hash = init->hash,
		.node_count = init->node_count,
		.rank_count = init->rank_count,
		.rank = init->rank,
		.api = init->api,
		.event_mask =
			options_get_event_mask(init->api) & ~recorder_get_disabled_event_mask(),
		.nccl_event_mask = init->event_mask,
	};

	names_clear_address_cache();
	helper_refill_ready_chunks();
	*init->context = communicators_add(&identity);
	if (init->event_mask)
		__atomic_store_n(init->event_mask, (int)identity.event_mask, __ATOMIC_RELAXED);
	RELAXED_STORE(store.header->mask, identity.event_mask);
	if (call_trace_is_on())
		call_trace_write_init_call(*init->context, &identity);
}

int plugin_init_communicator(const struct plugin_init_arguments *init)
{
	*init->context = &no_recording_context_placeholder;
	pthread_mutex_lock(&plugin_lock);
	log_set_nccl_logger(init->logger);
	if (recording_status == RECORDING_NOT_TRIED)
		start_recording_if_enabled(init);
	else if (is_child_of_recording_process)
		log_info_to_nccl(
			"nothing is recorded: this process was forked from one that records");
	if (recording_status == RECORDING_ON)
		add_communicator(init);
	pthread_mutex_unlock(&plugin_lock);
	return NCCL_SUCCESS;
}

int plugin_finalize_communicator(void *context)
{
	if (!recorder_is_on())
		return NCCL_SUCCESS;
	if (call_trace_is_on())
		call_trace_write_finalize_call(context);
	recorder_record_communicator_finalize(context);
	return NCCL_SUCCESS;
}

int plugin_stop_event(void *handle)
{
	if (__builtin_expect(!recorder_is_on_without_call_trace(), 0)) {
		if (!recorder_is_on())
			return NCCL_SUCCESS;
		call_trace_write_event_stop(handle);
	}
	recorder_record_event_stop(handle);
	return NCCL_SUCCESS;
}
