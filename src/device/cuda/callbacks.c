/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUPTI's callbacks: entry and exit of functions of runtime and driver. Only those that somebody
 * wants are enabled: each costs some 100 ns on both sides. Calls that start work are always among
 * them, because the records of that work name nothing but the call; the driver's are enough for
 * that, also under the runtime's functions: both have the same correlation id.
 */
#include <dlfcn.h>
#include <string.h>

#include "common/array.h"
#include "common/hot.h"
#include "common/loader.h"
#include "common/loader_state.h"
#include "device/cuda/counting.h"

#define DRIVER_CALL_IDS_MAX  1024
#define RUNTIME_CALL_IDS_MAX 1024
#define CALL_NESTING_MAX     12          /* room for variables of threads is scarce in a library */
#define PER_THREAD_STREAM    ((void *)2) /* CU_STREAM_PER_THREAD */

/* Calls of the driver that copy or fill (cupti_driver_cbid.h): 276-293 and 305-306 copies, 318-320
 * between devices, 216-226 and 249-254 fills, 397-433 the same on the thread's own stream, 776-779
 * batches. */
static const struct {
	uint16_t first, last;
} copy_and_fill_call_id_ranges[] = {{216, 226}, {249, 254}, {276, 293}, {305, 306},
				    {318, 321}, {397, 416}, {418, 433}, {776, 779}};

/* What was told at the entry of a call, until its exit. */
struct api_call_frame {
	int domain;
	uint32_t call_id, correlation_id;
	device_handle call_handle, work_handle;
	bool is_kernel;
	struct device_api_call_info call_info;
	struct cuda_launch_counting_state
		launch_counting; /* session NULL: kernels are not counted */
};

struct api_call_stack {
	unsigned depth;
	struct api_call_frame frames[CALL_NESTING_MAX];
};

/* Room that a library gets beside the program's own is found by a call each time; the way to it is
 * one word of the little that is at a fixed place. */
static _Thread_local struct api_call_stack api_call_stack;
static _Thread_local struct api_call_stack *thread_call_stack_pointer
	__attribute__((tls_model("initial-exec")));
_Thread_local bool cuda_thread_in_callback_flag __attribute__((tls_model("initial-exec")));
static _Atomic bool unwanted_callbacks_enabled_flag; /* callbacks are on that nobody wants */
static _Atomic int capturing_stream_count;           /* streams that are being captured */

/* What is read of the parameters of cuLaunchKernel and its like, and of cuLaunchKernelEx's config
 * (cuda.h). */
struct launch_parameters {
	const void *function;
	uint32_t grid[3], block[3], shared_bytes;
	const void *stream;
};

struct launch_config {
	uint32_t grid[3], block[3], shared_bytes;
	const void *stream;
};

struct launch_ex_parameters {
	const struct launch_config *config;
	const void *function;
};

static inline struct api_call_stack *get_thread_call_stack(void)
{
	if (__builtin_expect(thread_call_stack_pointer == NULL, 0))
		thread_call_stack_pointer = &api_call_stack;
	return thread_call_stack_pointer;
}

static bool is_kernel_launch(uint32_t call)
{
	switch (call) {
	case CUPTI_CALL_LAUNCH_KERNEL:
	case CUPTI_CALL_LAUNCH_KERNEL_PTSZ:
	case CUPTI_CALL_LAUNCH_COOPERATIVE:
	case CUPTI_CALL_LAUNCH_COOPERATIVE_PTSZ:
	case CUPTI_CALL_LAUNCH_KERNEL_EX:
	case CUPTI_CALL_LAUNCH_KERNEL_EX_PTSZ:
		return true;
	default:
		return false;
	}
}

static bool is_graph_launch(uint32_t call)
{
	return call == CUPTI_CALL_GRAPH_LAUNCH || call == CUPTI_CALL_GRAPH_LAUNCH_PTSZ;
}

static bool is_capture_begin(uint32_t call)
{
	return call == CUPTI_CALL_BEGIN_CAPTURE || call == CUPTI_CALL_BEGIN_CAPTURE_PTSZ ||
	       call == CUPTI_CALL_BEGIN_CAPTURE_2 || call == CUPTI_CALL_BEGIN_CAPTURE_2_PTSZ ||
	       call == CUPTI_CALL_BEGIN_CAPTURE_TO_GRAPH ||
	       call == CUPTI_CALL_BEGIN_CAPTURE_TO_GRAPH_PTSZ;
}

static bool is_capture_end(uint32_t call)
{
	return call == CUPTI_CALL_END_CAPTURE || call == CUPTI_CALL_END_CAPTURE_PTSZ;
}

static bool is_copy_or_fill_call(uint32_t call)
{
	for (size_t i = 0; i < ARRAY_SIZE(copy_and_fill_call_id_ranges); i++) {
		if (call >= copy_and_fill_call_id_ranges[i].first &&
		    call <= copy_and_fill_call_id_ranges[i].last)
			return true;
	}
	return false;
}

/* While a graph is made of what is launched, nothing runs. */
KYMO_HOT static bool stream_is_capturing(const void *stream)
{
	static int (*is_capturing)(const void *stream, int *status);
	int status = 0;

	if (atomic_load_explicit(&capturing_stream_count, memory_order_relaxed) == 0)
		return false;
	if (is_capturing == NULL) {
		void *driver =
			loader_dlopen_keeping_dlerror("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

		if (driver != NULL)
			*(void **)&is_capturing =
				loader_find_symbol_in_handle(driver, "cuStreamIsCapturing");
	}
	return is_capturing != NULL && is_capturing(stream, &status) == 0 && status != 0;
}

/* Calls that end on _ptsz take the thread's own stream for none. */
static void *resolve_launch_stream(uint32_t call, const void *stream)
{
	bool is_own = call == CUPTI_CALL_LAUNCH_KERNEL_PTSZ ||
		      call == CUPTI_CALL_LAUNCH_COOPERATIVE_PTSZ ||
		      call == CUPTI_CALL_LAUNCH_KERNEL_EX_PTSZ ||
		      call == CUPTI_CALL_GRAPH_LAUNCH_PTSZ;

	return stream == NULL && is_own ? PER_THREAD_STREAM : (void *)(uintptr_t)stream; // NOLINT
}

/* NULL: of a graph. */
static const void *read_launched_function(uint32_t call, const struct cupti_callback_data *data)
{
	if (is_graph_launch(call))
		return NULL;
	if (call == CUPTI_CALL_LAUNCH_KERNEL_EX || call == CUPTI_CALL_LAUNCH_KERNEL_EX_PTSZ)
		return ((const struct launch_ex_parameters *)data->parameters)->function;
	return ((const struct launch_parameters *)data->parameters)->function;
}

/* true: it is captured. */
KYMO_HOT static bool fill_kernel_and_tell_if_captured(uint32_t call, const void *parameters,
						      const char *name,
						      struct device_kernel_launch *kernel,
						      void **its_stream)
{
	const void *function, *stream;
	const uint32_t *grid, *block;

	if (call == CUPTI_CALL_LAUNCH_KERNEL_EX || call == CUPTI_CALL_LAUNCH_KERNEL_EX_PTSZ) {
		const struct launch_ex_parameters *ex = parameters;

		if (ex->config == NULL) /* the driver is going to refuse it */
			return false;
		function = ex->function;
		stream = ex->config->stream;
		grid = ex->config->grid;
		block = ex->config->block;
		kernel->group_bytes = ex->config->shared_bytes;
	} else {
		const struct launch_parameters *plain = parameters;

		function = plain->function;
		stream = plain->stream;
		grid = plain->grid;
		block = plain->block;
		kernel->group_bytes = plain->shared_bytes;
	}
	kernel->symbol = cuda_symbol_find_or_add_by_function(function, name);
	for (unsigned i = 0; i < 3; i++) {
		kernel->group_threads[i] = block[i];
		kernel->grid_threads[i] = grid[i] * block[i];
	}
	*its_stream = resolve_launch_stream(call, stream);
	return stream_is_capturing(stream);
}

/* Names of graphs must be known before their records come, which may be at the very end. */
static device_handle find_or_add_graph_symbol(const void *parameters)
{
	void *const *executable = parameters; /* the first of cuGraphLaunch(), then the stream */
	uint32_t id = 0;

	if (cupti.GetGraphExecId != NULL && executable != NULL && *executable != NULL &&
	    cupti.GetGraphExecId(*executable, &id) == CUPTI_SUCCESS)
		return cuda_symbol_find_or_add_by_graph(id);
	return DEVICE_HANDLE_NONE;
}

/* Where kernels are counted a graph goes as one of them, unless each of its kernels is to have a
 * record of its own: those cannot be distinguished in time. */
static bool fill_graph_launch_and_tell_if_counted(const struct device_sink *sink,
						  const struct api_call_frame *frame,
						  const struct cupti_callback_data *data,
						  struct device_kernel_launch *kernel,
						  void **stream)
{
	void *const *parameters = data->parameters;

	*kernel =
		(struct device_kernel_launch){.symbol = find_or_add_graph_symbol(data->parameters),
					      .group_threads = {1, 1, 1},
					      .grid_threads = {1, 1, 1}};
	*stream = parameters != NULL ? resolve_launch_stream(frame->call_id, parameters[1]) : NULL;
	return sink->is_wanted(DEVICE_SERVICE_KERNELS, -1) && !cuda_is_recording_graph_nodes() &&
	       cuda_is_counting_any_agent() &&
	       cuda_is_counting_kernels_of_agent(cuda_get_context_agent(data->context)) &&
	       !stream_is_capturing(*stream);
}

static void register_kernel_launch(const struct device_sink *sink, struct api_call_frame *frame,
				   const struct cupti_callback_data *data,
				   struct device_kernel_launch *kernel, void *stream)
{
	struct cuda_countable_launch going = {data->context, stream,
					      read_launched_function(frame->call_id, data),
					      stream == PER_THREAD_STREAM};
	struct cuda_pending_launch launch = {CUDA_LAUNCH_KERNEL, DEVICE_HANDLE_NONE};
	bool is_counting = cuda_is_counting_any_agent();

	if (is_counting)
		kernel->agent = cuda_get_context_agent(data->context);
	frame->work_handle = launch.handle = sink->kernel_enqueue(kernel);
	frame->is_kernel = true;
	if (frame->work_handle == DEVICE_HANDLE_NONE)
		return;
	if (is_counting && cuda_is_counting_kernels_of_agent(kernel->agent) &&
	    cuda_kernel_counting_begin_launch(&frame->launch_counting, &going, frame->work_handle,
					      kernel)) {
		if (frame->launch_counting.is_timed_by_events)
			return;
		launch.kind = CUDA_LAUNCH_COUNTED;
		launch.handle = cuda_profiled_kernel_to_handle(frame->launch_counting.counted);
	}
	cuda_launch_add(data->correlation_id, launch);
}

static bool sink_wants_kernels_or_copies(const struct device_sink *sink)
{
	return (!cuda_is_ignoring_launches() || cuda_is_counting_any_agent()) &&
	       (sink->is_wanted(DEVICE_SERVICE_KERNELS, -1) ||
		sink->is_wanted(DEVICE_SERVICE_COPIES, -1));
}

KYMO_HOT static void register_work_at_call_entry(const struct device_sink *sink,
						 struct api_call_frame *frame,
						 const struct cupti_callback_data *data)
{
	struct cuda_pending_launch launch = {CUDA_LAUNCH_OTHER, DEVICE_HANDLE_NONE};
	struct device_kernel_launch kernel = {0};
	void *stream = NULL;

	if (!sink_wants_kernels_or_copies(sink))
		return;
	cuda_register_tools_end_at_use_stage(CUDA_USE_WORK);
	if (is_kernel_launch(frame->call_id)) {
		if (sink->is_wanted(DEVICE_SERVICE_KERNELS, -1) &&
		    !fill_kernel_and_tell_if_captured(frame->call_id, data->parameters,
						      data->symbol_name, &kernel, &stream))
			register_kernel_launch(sink, frame, data, &kernel, stream);
		return;
	}
	if (is_graph_launch(frame->call_id)) {
		if (fill_graph_launch_and_tell_if_counted(sink, frame, data, &kernel, &stream)) {
			register_kernel_launch(sink, frame, data, &kernel, stream);
			return;
		}
		launch.handle = sink->correlation_open();
	} else if (is_copy_or_fill_call(frame->call_id)) {
		launch.handle = sink->correlation_open();
	}
	if (launch.handle == DEVICE_HANDLE_NONE)
		return;
	frame->work_handle = launch.handle;
	cuda_launch_add(data->correlation_id, launch);
}

KYMO_HOT static void handle_api_call_entry(const struct device_sink *sink, int domain,
					   uint32_t call, const struct cupti_callback_data *data)
{
	enum device_service_kind service = domain == CUPTI_DOMAIN_DRIVER
						   ? DEVICE_SERVICE_CALLS_CUDA_DRIVER
						   : DEVICE_SERVICE_CALLS_CUDA_RUNTIME;
	struct api_call_stack *calls = get_thread_call_stack();
	struct api_call_frame *frame;

	*data->correlation_data = 0;
	if (calls->depth == CALL_NESTING_MAX)
		return;
	frame = &calls->frames[calls->depth++];
	*data->correlation_data = (uintptr_t)frame;
	frame->domain = domain;
	frame->call_id = call;
	frame->correlation_id = data->correlation_id;
	frame->call_handle = frame->work_handle = DEVICE_HANDLE_NONE;
	frame->is_kernel = false;
	frame->launch_counting.session = NULL;
	if (sink->is_wanted(service, (int32_t)call)) {
		frame->call_info =
			(struct device_api_call_info){service, (int32_t)call, data->parameters};
		frame->call_handle = sink->call_enter(&frame->call_info);
	}
	if (domain != CUPTI_DOMAIN_DRIVER)
		return;
	if (data->context != NULL && cuda_counting_awaits_driver())
		cuda_report_driver_ready();
	register_work_at_call_entry(sink, frame, data);
}

/* A call that failed starts nothing; its place is free again. */
static void report_work_submission_at_call_exit(const struct device_sink *sink,
						struct api_call_frame *frame, bool failed)
{
	struct cuda_pending_launch launch;

	if (!failed) {
		if (frame->is_kernel)
			sink->kernel_submitted(frame->work_handle, false);
		cuda_kernel_counting_end_launch(&frame->launch_counting, false);
		return;
	}
	launch = cuda_launch_find_and_maybe_remove(frame->correlation_id, false);
	cuda_kernel_counting_end_launch(&frame->launch_counting, true);
	if (frame->is_kernel)
		sink->kernel_submitted(frame->work_handle, true);
	else if (launch.kind == CUDA_LAUNCH_OTHER)
		sink->correlation_close(launch.handle);
}

/* A capture ends also when it fails. */
static void update_capturing_stream_count(uint32_t call, bool succeeded)
{
	if (is_capture_begin(call) && succeeded)
		atomic_fetch_add(&capturing_stream_count, 1);
	else if (is_capture_end(call) && atomic_load(&capturing_stream_count) > 0)
		atomic_fetch_sub(&capturing_stream_count, 1);
}

KYMO_HOT static void handle_api_call_exit(const struct device_sink *sink, int domain, uint32_t call,
					  const struct cupti_callback_data *data)
{
	struct api_call_stack *calls = get_thread_call_stack();
	struct api_call_frame *frame = (struct api_call_frame *)(uintptr_t)*data->correlation_data;
	size_t place = (size_t)(frame - calls->frames);

	/* An exit whose entry was before callbacks were enabled has somebody else's data, or none.
	 */
	if (frame < calls->frames || place >= calls->depth || frame->domain != domain ||
	    frame->call_id != call || frame->correlation_id != data->correlation_id)
		return;
	if (domain == CUPTI_DOMAIN_DRIVER)
		update_capturing_stream_count(call, data->return_value == NULL ||
							    *(const int *)data->return_value == 0);
	if (frame->work_handle != DEVICE_HANDLE_NONE)
		report_work_submission_at_call_exit(sink, frame,
						    data->return_value != NULL &&
							    *(const int *)data->return_value != 0);
	if (frame->call_handle != DEVICE_HANDLE_NONE)
		sink->call_exit(frame->call_handle, &frame->call_info, data->return_value);
	calls->depth = (unsigned)place;
}

static void handle_resource_event(uint32_t what, const struct cupti_resource_data *data)
{
	switch (what) {
	case CUPTI_RESOURCE_CONTEXT_CREATED:
		cuda_register_driver_devices();
		cuda_handle_context_created();
		if (cuda_is_counting_any_agent())
			device_backend_cuda.wanted_services_changed(device_get_sink());
		break;
	case CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING:
		cuda_kernel_counting_end_session_of_context(data->context);
		break;
	case CUPTI_RESOURCE_MODULE_LOADED:
		cuda_register_tools_end_at_use_stage(CUDA_USE_CODE);
		if (data->descriptor != NULL)
			cuda_handle_module_loaded(data->descriptor, data->context);
		break;
	case CUPTI_RESOURCE_MODULE_UNLOAD_STARTING:
		if (data->descriptor != NULL)
			cuda_handle_module_unloaded(data->descriptor);
		break;
	case CUPTI_RESOURCE_GRAPH_NODE_CREATED:
		if (data->descriptor != NULL)
			cuda_graphs_record_nodes_if_copy_node(data->descriptor);
		break;
	default:
		break;
	}
}

KYMO_HOT void cuda_handle_callback(void *user, int domain, uint32_t call, const void *data)
{
	const struct device_sink *sink = device_get_sink();
	const struct cupti_callback_data *told = data;
	bool outer = cuda_thread_in_callback_flag;

	(void)user;
	if (sink == NULL || cuda_thread_in_kymo_call_flag)
		return;
	cuda_thread_in_callback_flag = true;
	if (domain == CUPTI_DOMAIN_RESOURCE)
		handle_resource_event(call, data);
	else if (told->site == CUPTI_SITE_ENTER)
		handle_api_call_entry(sink, domain, call, told);
	else
		handle_api_call_exit(sink, domain, call, told);
	cuda_thread_in_callback_flag = outer;
}

static bool call_starts_work_or_capture(uint32_t call)
{
	return is_kernel_launch(call) || is_graph_launch(call) || is_copy_or_fill_call(call) ||
	       is_capture_begin(call) || is_capture_end(call) ||
	       (call >= CUPTI_CALL_LAUNCH && call <= CUPTI_CALL_LAUNCH_GRID_ASYNC);
}

/* What programs do first with a context: load code (18-21, 678), take memory (243, 598). */
static bool is_code_load_or_allocation_call(uint32_t call)
{
	return (call >= 18 && call <= 21) || call == 243 || call == 598 || call == 678;
}

/* A callback that is taken away between entry and exit of its call leaves CUPTI with the id of that
 * call for all further ones of the thread (CUDA 13.0). So none is within a callback, but a little
 * later, and those of work, in which threads are most, are never. */
static bool set_callback_enabled_if_safe(void *subscriber, int domain, uint32_t call, bool wanted,
					 bool is_on)
{
	if (!wanted && domain == CUPTI_DOMAIN_DRIVER && call_starts_work_or_capture(call))
		return is_on;
	if (!wanted && cuda_thread_in_callback_flag) {
		atomic_store(&unwanted_callbacks_enabled_flag, true);
		return is_on;
	}
	cupti.EnableCallback(wanted, subscriber, domain, call);
	return wanted;
}

bool cuda_take_callbacks_to_disable_flag(void)
{
	return atomic_exchange(&unwanted_callbacks_enabled_flag, false);
}

/* Turns single callbacks on and off, only where something has changed. */
void cuda_update_enabled_callbacks(const struct device_sink *sink, void *subscriber)
{
	static bool driver_is_on[DRIVER_CALL_IDS_MAX], runtime_is_on[RUNTIME_CALL_IDS_MAX];
	bool awaited = cuda_counting_awaits_driver();
	bool work = awaited || sink_wants_kernels_or_copies(sink);

	for (uint32_t call = 1; call < DRIVER_CALL_IDS_MAX; call++) {
		bool wanted = sink->is_wanted(DEVICE_SERVICE_CALLS_CUDA_DRIVER, (int32_t)call) ||
			      (work && call_starts_work_or_capture(call)) ||
			      (awaited && is_code_load_or_allocation_call(call));

		if (wanted != driver_is_on[call])
			driver_is_on[call] = set_callback_enabled_if_safe(
				subscriber, CUPTI_DOMAIN_DRIVER, call, wanted, driver_is_on[call]);
	}
	for (uint32_t call = 1; call < RUNTIME_CALL_IDS_MAX; call++) {
		bool wanted = sink->is_wanted(DEVICE_SERVICE_CALLS_CUDA_RUNTIME, (int32_t)call);

		if (wanted != runtime_is_on[call])
			runtime_is_on[call] =
				set_callback_enabled_if_safe(subscriber, CUPTI_DOMAIN_RUNTIME, call,
							     wanted, runtime_is_on[call]);
	}
}
