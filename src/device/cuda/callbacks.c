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

#include "common/hot.h"
#include "device/cuda/counting.h"

#define DRIVER_CALLS_MAX  1024
#define RUNTIME_CALLS_MAX 1024
#define DEPTH_MAX         12          /* room for variables of threads is scarce in a library */
#define OWN_STREAM        ((void *)2) /* CU_STREAM_PER_THREAD */

/* Calls of the driver that copy or fill (cupti_driver_cbid.h): 276-293 and 305-306 copies, 318-320
 * between devices, 216-226 and 249-254 fills, 397-433 the same on the thread's own stream, 776-779
 * batches. */
static const struct {
	uint16_t first, last;
} transfers[] = {{216, 226}, {249, 254}, {276, 293}, {305, 306},
		 {318, 321}, {397, 416}, {418, 433}, {776, 779}};

/* What was told at the entry of a call, until its exit. */
struct frame {
	int domain;
	uint32_t call, correlation;
	device_handle told, work;
	bool is_kernel;
	struct device_call arguments;
	struct cuda_counting counting; /* session NULL: kernels are not counted */
};

struct open_calls {
	unsigned depth;
	struct frame frames[DEPTH_MAX];
};

/* Room that a library gets beside the program's own is found by a call each time; the way to it is
 * one word of the little that is at a fixed place. */
static _Thread_local struct open_calls open_calls;
static _Thread_local struct open_calls *open_here __attribute__((tls_model("initial-exec")));
_Thread_local bool cuda_inside __attribute__((tls_model("initial-exec")));
static _Atomic bool is_behind; /* callbacks are on that nobody wants */
static _Atomic int captures;   /* streams that are being captured */

/* Of the parameters of cuLaunchKernel and its like, and of cuLaunchKernelEx's config (cuda.h). */
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

static inline struct open_calls *calls_of_thread(void)
{
	if (__builtin_expect(open_here == NULL, 0))
		open_here = &open_calls;
	return open_here;
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

static bool is_transfer(uint32_t call)
{
	for (size_t i = 0; i < sizeof(transfers) / sizeof(*transfers); i++) {
		if (call >= transfers[i].first && call <= transfers[i].last)
			return true;
	}
	return false;
}

/* While a graph is made of what is launched, nothing runs. */
KYMO_HOT static bool is_captured(const void *stream)
{
	static int (*is_capturing)(const void *stream, int *status);
	int status = 0;

	if (atomic_load_explicit(&captures, memory_order_relaxed) == 0)
		return false;
	if (is_capturing == NULL) {
		void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

		if (driver != NULL)
			*(void **)&is_capturing = dlsym(driver, "cuStreamIsCapturing");
	}
	return is_capturing != NULL && is_capturing(stream, &status) == 0 && status != 0;
}

/* Calls that end on _ptsz take the thread's own stream for none. */
static void *stream_of(uint32_t call, const void *stream)
{
	bool is_own = call == CUPTI_CALL_LAUNCH_KERNEL_PTSZ ||
		      call == CUPTI_CALL_LAUNCH_COOPERATIVE_PTSZ ||
		      call == CUPTI_CALL_LAUNCH_KERNEL_EX_PTSZ ||
		      call == CUPTI_CALL_GRAPH_LAUNCH_PTSZ;

	return stream == NULL && is_own ? OWN_STREAM : (void *)(uintptr_t)stream; // NOLINT
}

/* NULL: of a graph. */
static const void *function_of(uint32_t call, const struct cupti_callback_data *data)
{
	if (is_graph_launch(call))
		return NULL;
	if (call == CUPTI_CALL_LAUNCH_KERNEL_EX || call == CUPTI_CALL_LAUNCH_KERNEL_EX_PTSZ)
		return ((const struct launch_ex_parameters *)data->parameters)->function;
	return ((const struct launch_parameters *)data->parameters)->function;
}

/* true: it is captured. */
KYMO_HOT static bool describe_launch(uint32_t call, const void *parameters, const char *name,
				     struct device_kernel *kernel, void **its_stream)
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
	kernel->symbol = cuda_symbol_of_function(function, name);
	for (unsigned i = 0; i < 3; i++) {
		kernel->group[i] = block[i];
		kernel->grid[i] = grid[i] * block[i];
	}
	*its_stream = stream_of(call, stream);
	return is_captured(stream);
}

/* Names of graphs must be known before their records come, which may be at the very end. */
static device_handle name_graph(const void *parameters)
{
	void *const *executable = parameters; /* the first of cuGraphLaunch(), then the stream */
	uint32_t id = 0;

	if (cupti.GetGraphExecId != NULL && executable != NULL && *executable != NULL &&
	    cupti.GetGraphExecId(*executable, &id) == CUPTI_SUCCESS)
		return cuda_symbol_of_graph(id);
	return DEVICE_NONE;
}

/* Where kernels are counted a graph goes as one of them, unless each of its kernels is to have a
 * record of its own: those cannot be told apart in time. */
static bool begin_graph(const struct device_sink *sink, const struct frame *frame,
			const struct cupti_callback_data *data, struct device_kernel *kernel,
			void **stream)
{
	void *const *parameters = data->parameters;

	*kernel = (struct device_kernel){
		.symbol = name_graph(data->parameters), .group = {1, 1, 1}, .grid = {1, 1, 1}};
	*stream = parameters != NULL ? stream_of(frame->call, parameters[1]) : NULL;
	return sink->wants(DEVICE_SERVICE_KERNELS, -1) && !cuda_by_node() && cuda_counts_any() &&
	       cuda_counts(cuda_context_agent(data->context)) && !is_captured(*stream);
}

static void begin_kernel(const struct device_sink *sink, struct frame *frame,
			 const struct cupti_callback_data *data, struct device_kernel *kernel,
			 void *stream)
{
	struct cuda_going going = {data->context, stream, function_of(frame->call, data),
				   stream == OWN_STREAM};
	struct cuda_launch launch = {CUDA_LAUNCH_KERNEL, DEVICE_NONE};
	bool is_counting = cuda_counts_any();

	if (is_counting)
		kernel->agent = cuda_context_agent(data->context);
	frame->work = launch.handle = sink->kernel_enqueue(kernel);
	frame->is_kernel = true;
	if (frame->work == DEVICE_NONE)
		return;
	if (is_counting && cuda_counts(kernel->agent) &&
	    cuda_count_enter(&frame->counting, &going, frame->work, kernel)) {
		if (frame->counting.is_timed)
			return;
		launch.kind = CUDA_LAUNCH_COUNTED;
		launch.handle = cuda_counted_handle(frame->counting.counted);
	}
	cuda_launch_put(data->correlation_id, launch);
}

static bool wants_work(const struct device_sink *sink)
{
	return (!cuda_without_launches() || cuda_counts_any()) &&
	       (sink->wants(DEVICE_SERVICE_KERNELS, -1) || sink->wants(DEVICE_SERVICE_COPIES, -1));
}

KYMO_HOT static void begin_work(const struct device_sink *sink, struct frame *frame,
				const struct cupti_callback_data *data)
{
	struct cuda_launch launch = {CUDA_LAUNCH_OTHER, DEVICE_NONE};
	struct device_kernel kernel = {0};
	void *stream = NULL;

	if (!wants_work(sink))
		return;
	cuda_used(CUDA_USE_WORK);
	if (is_kernel_launch(frame->call)) {
		if (sink->wants(DEVICE_SERVICE_KERNELS, -1) &&
		    !describe_launch(frame->call, data->parameters, data->symbol_name, &kernel,
				     &stream))
			begin_kernel(sink, frame, data, &kernel, stream);
		return;
	}
	if (is_graph_launch(frame->call)) {
		if (begin_graph(sink, frame, data, &kernel, &stream)) {
			begin_kernel(sink, frame, data, &kernel, stream);
			return;
		}
		launch.handle = sink->correlation_open();
	} else if (is_transfer(frame->call)) {
		launch.handle = sink->correlation_open();
	}
	if (launch.handle == DEVICE_NONE)
		return;
	frame->work = launch.handle;
	cuda_launch_put(data->correlation_id, launch);
}

KYMO_HOT static void enter(const struct device_sink *sink, int domain, uint32_t call,
			   const struct cupti_callback_data *data)
{
	enum device_service service = domain == CUPTI_DOMAIN_DRIVER
					      ? DEVICE_SERVICE_CALLS_CUDA_DRIVER
					      : DEVICE_SERVICE_CALLS_CUDA_RUNTIME;
	struct open_calls *calls = calls_of_thread();
	struct frame *frame;

	*data->correlation_data = 0;
	if (calls->depth == DEPTH_MAX)
		return;
	frame = &calls->frames[calls->depth++];
	*data->correlation_data = (uintptr_t)frame;
	frame->domain = domain;
	frame->call = call;
	frame->correlation = data->correlation_id;
	frame->told = frame->work = DEVICE_NONE;
	frame->is_kernel = false;
	frame->counting.session = NULL;
	if (sink->wants(service, (int32_t)call)) {
		frame->arguments = (struct device_call){service, (int32_t)call, data->parameters};
		frame->told = sink->call_enter(&frame->arguments);
	}
	if (domain != CUPTI_DOMAIN_DRIVER)
		return;
	if (data->context != NULL && cuda_is_awaited())
		cuda_tell_ready();
	begin_work(sink, frame, data);
}

/* A call that failed starts nothing; its place is free again. */
static void end_work(const struct device_sink *sink, struct frame *frame, bool failed)
{
	struct cuda_launch launch;

	if (!failed) {
		if (frame->is_kernel)
			sink->kernel_submitted(frame->work, false);
		cuda_count_exit(&frame->counting, false);
		return;
	}
	launch = cuda_launch_get(frame->correlation, false);
	cuda_count_exit(&frame->counting, true);
	if (frame->is_kernel)
		sink->kernel_submitted(frame->work, true);
	else if (launch.kind == CUDA_LAUNCH_OTHER)
		sink->correlation_close(launch.handle);
}

/* A capture ends also when it fails. */
static void count_captures(uint32_t call, bool succeeded)
{
	if (is_capture_begin(call) && succeeded)
		atomic_fetch_add(&captures, 1);
	else if (is_capture_end(call) && atomic_load(&captures) > 0)
		atomic_fetch_sub(&captures, 1);
}

KYMO_HOT static void leave(const struct device_sink *sink, int domain, uint32_t call,
			   const struct cupti_callback_data *data)
{
	struct open_calls *calls = calls_of_thread();
	struct frame *frame = (struct frame *)(uintptr_t)*data->correlation_data;
	size_t place = (size_t)(frame - calls->frames);

	/* An exit whose entry was before callbacks were enabled has somebody else's data, or none.
	 */
	if (frame < calls->frames || place >= calls->depth || frame->domain != domain ||
	    frame->call != call || frame->correlation != data->correlation_id)
		return;
	if (domain == CUPTI_DOMAIN_DRIVER)
		count_captures(call,
			       data->return_value == NULL || *(const int *)data->return_value == 0);
	if (frame->work != DEVICE_NONE)
		end_work(sink, frame,
			 data->return_value != NULL && *(const int *)data->return_value != 0);
	if (frame->told != DEVICE_NONE)
		sink->call_exit(frame->told, &frame->arguments, data->return_value);
	calls->depth = (unsigned)place;
}

static void resource(uint32_t what, const struct cupti_resource_data *data)
{
	switch (what) {
	case CUPTI_RESOURCE_CONTEXT_CREATED:
		cuda_driver_is_up();
		cuda_context_made();
		if (cuda_counts_any())
			device_backend_cuda.wanted_changed(device_sink());
		break;
	case CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING:
		cuda_count_context_gone(data->context);
		break;
	case CUPTI_RESOURCE_MODULE_LOADED:
		cuda_used(CUDA_USE_CODE);
		if (data->descriptor != NULL)
			cuda_module_loaded(data->descriptor, data->context);
		break;
	case CUPTI_RESOURCE_MODULE_UNLOAD_STARTING:
		if (data->descriptor != NULL)
			cuda_module_unloaded(data->descriptor);
		break;
	default:
		break;
	}
}

KYMO_HOT void cuda_callback(void *user, int domain, uint32_t call, const void *data)
{
	const struct device_sink *sink = device_sink();
	const struct cupti_callback_data *told = data;
	bool outer = cuda_inside;

	(void)user;
	if (sink == NULL || cuda_own_call)
		return;
	cuda_inside = true;
	if (domain == CUPTI_DOMAIN_RESOURCE)
		resource(call, data);
	else if (told->site == CUPTI_SITE_ENTER)
		enter(sink, domain, call, told);
	else
		leave(sink, domain, call, told);
	cuda_inside = outer;
}

static bool is_work(uint32_t call)
{
	return is_kernel_launch(call) || is_graph_launch(call) || is_transfer(call) ||
	       is_capture_begin(call) || is_capture_end(call) ||
	       (call >= CUPTI_CALL_LAUNCH && call <= CUPTI_CALL_LAUNCH_GRID_ASYNC);
}

/* What programs do first with a context: load code (18-21, 678), take memory (243, 598). */
static bool is_first(uint32_t call)
{
	return (call >= 18 && call <= 21) || call == 243 || call == 598 || call == 678;
}

/* A callback that is taken away between entry and exit of its call leaves CUPTI with the id of that
 * call for all further ones of the thread (CUDA 13.0). So none is within a callback, but a little
 * later, and those of work, in which threads are most, are never. */
static bool switch_call(void *subscriber, int domain, uint32_t call, bool wanted, bool is_on)
{
	if (!wanted && domain == CUPTI_DOMAIN_DRIVER && is_work(call))
		return is_on;
	if (!wanted && cuda_inside) {
		atomic_store(&is_behind, true);
		return is_on;
	}
	cupti.EnableCallback(wanted, subscriber, domain, call);
	return wanted;
}

bool cuda_follow_is_behind(void)
{
	return atomic_exchange(&is_behind, false);
}

/* Turns single callbacks on and off, only where something has changed. */
void cuda_follow_wanted(const struct device_sink *sink, void *subscriber)
{
	static bool driver_is_on[DRIVER_CALLS_MAX], runtime_is_on[RUNTIME_CALLS_MAX];
	bool awaited = cuda_is_awaited();
	bool work = awaited || wants_work(sink);

	for (uint32_t call = 1; call < DRIVER_CALLS_MAX; call++) {
		bool wanted = sink->wants(DEVICE_SERVICE_CALLS_CUDA_DRIVER, (int32_t)call) ||
			      (work && is_work(call)) || (awaited && is_first(call));

		if (wanted != driver_is_on[call])
			driver_is_on[call] = switch_call(subscriber, CUPTI_DOMAIN_DRIVER, call,
							 wanted, driver_is_on[call]);
	}
	for (uint32_t call = 1; call < RUNTIME_CALLS_MAX; call++) {
		bool wanted = sink->wants(DEVICE_SERVICE_CALLS_CUDA_RUNTIME, (int32_t)call);

		if (wanted != runtime_is_on[call])
			runtime_is_on[call] = switch_call(subscriber, CUPTI_DOMAIN_RUNTIME, call,
							  wanted, runtime_is_on[call]);
	}
}
