/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The OpenCL layer over a runtime of this test's own, which completes commands when it is told to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/counting.h"
#include "device/opencl/opencl.h"
#include "device/registry/devices.h"
#include "sink.h"

cl_int clGetLayerInfo(cl_uint name, size_t size, void *value, size_t *size_wanted);
cl_int clInitLayer(cl_uint entries, const void *below, cl_uint *entries_given, const void **table);

struct event {
	int references;
	uint64_t queued;
	void (*callback)(cl_event, cl_int, void *);
	void *data;
};

static int objects[8]; /* addresses for handles */
static struct opencl_function_table below;
static const struct opencl_function_table *ours;
static struct event *pending[64];
static unsigned pending_count, live_events, queue_references;
static cl_command_queue_properties seen_properties;
static bool refuses_profiling, refuses_callbacks, fails;
static size_t kernels_run;

static uint64_t device_now(void)
{
	return device_get_sink()->now() - 1000000000; /* a clock one second behind */
}

static cl_int get_device_info(cl_device_id device, cl_device_info what, size_t size, void *value,
			      size_t *wanted)
{
	(void)device;
	(void)wanted;
	if (what == CL_DEVICE_TYPE && size >= sizeof(cl_ulong))
		memcpy(value, &(cl_ulong){4}, sizeof(cl_ulong));
	else if (what == CL_DEVICE_NAME || what == CL_DEVICE_VENDOR || what == CL_DEVICE_VERSION)
		strncpy(value, "Test device", size);
	else
		return CL_INVALID_VALUE;
	return CL_SUCCESS;
}

static cl_command_queue create_queue(cl_context context, cl_device_id device,
				     cl_command_queue_properties properties, cl_int *result)
{
	(void)context;
	(void)device;
	*result = CL_SUCCESS;
	seen_properties = properties;
	if (refuses_profiling && (properties & CL_QUEUE_PROFILING_ENABLE) != 0) {
		*result = -35;
		return NULL;
	}
	queue_references = 1;
	return &objects[0];
}

static cl_int queue_info(cl_command_queue queue, cl_command_queue_info what, size_t size,
			 void *value, size_t *wanted)
{
	(void)queue;
	(void)wanted;
	if (what == CL_QUEUE_PROPERTIES && size >= sizeof(seen_properties))
		memcpy(value, &seen_properties, sizeof(seen_properties));
	else if (what == CL_QUEUE_REFERENCE_COUNT)
		memcpy(value, &queue_references, sizeof(cl_uint));
	else if (what == CL_QUEUE_DEVICE)
		memcpy(value, &(void *){&objects[1]}, sizeof(void *));
	return CL_SUCCESS;
}

static cl_int release_queue(cl_command_queue queue)
{
	(void)queue;
	queue_references--;
	return CL_SUCCESS;
}

static cl_int kernel_info(cl_kernel kernel, cl_kernel_info what, size_t size, void *value,
			  size_t *wanted)
{
	(void)kernel;
	(void)wanted;
	if (what == CL_KERNEL_FUNCTION_NAME)
		strncpy(value, "kernel_of_test", size);
	else
		memcpy(value, &(void *){&objects[3]}, sizeof(void *));
	return CL_SUCCESS;
}

static cl_int work_group_info(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
			      size_t size, void *value, size_t *wanted)
{
	(void)kernel;
	(void)device;
	(void)what;
	(void)wanted;
	memset(value, 0, size);
	return CL_SUCCESS;
}

static cl_int program_info(cl_program program, cl_program_info what, size_t size, void *value,
			   size_t *wanted)
{
	(void)program;
	(void)size;
	(void)wanted;
	if (what == CL_PROGRAM_REFERENCE_COUNT)
		memcpy(value, &(cl_uint){1}, sizeof(cl_uint));
	else
		memcpy(value, &(void *){&objects[1]}, sizeof(void *));
	return CL_SUCCESS;
}

static cl_kernel create_kernel(cl_program program, const char *name, cl_int *result)
{
	(void)program;
	(void)name;
	if (result != NULL)
		*result = CL_SUCCESS;
	return &objects[2];
}

static cl_int release_program(cl_program program)
{
	(void)program;
	return CL_SUCCESS;
}

static cl_int add_event(cl_event *slot)
{
	struct event *event;

	if (fails)
		return -5;
	kernels_run++;
	if (slot == NULL)
		return CL_SUCCESS;
	event = calloc(1, sizeof(*event));
	event->references = 1;
	event->queued = device_now();
	pending[pending_count++] = event;
	live_events++;
	*slot = event;
	return CL_SUCCESS;
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
			     const size_t *offset, const size_t *global, const size_t *local,
			     cl_uint waits, const cl_event *list, cl_event *slot)
{
	(void)queue;
	(void)kernel;
	(void)dimensions;
	(void)offset;
	(void)global;
	(void)local;
	(void)waits;
	(void)list;
	return add_event(slot);
}

static cl_int enqueue_write(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
			    size_t size, const void *from, cl_uint waits, const cl_event *list,
			    cl_event *slot)
{
	(void)queue;
	(void)buffer;
	(void)blocking;
	(void)offset;
	(void)size;
	(void)from;
	(void)waits;
	(void)list;
	return add_event(slot);
}

static cl_int context_info(cl_context context, cl_context_info what, size_t size, void *value,
			   size_t *wanted)
{
	(void)context;
	(void)wanted;
	if (what != CL_CONTEXT_DEVICES || size < sizeof(void *))
		return CL_INVALID_VALUE;
	memcpy(value, &(void *){&objects[1]}, sizeof(void *));
	return CL_SUCCESS;
}

static char svm_memory[2][4096];

static void *svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t size,
		       unsigned int alignment)
{
	(void)context;
	(void)flags;
	return size <= sizeof(svm_memory[0]) && alignment < 2 ? svm_memory[alignment] : NULL;
}

static void svm_free(cl_context context, void *memory)
{
	(void)context;
	(void)memory;
}

static cl_int enqueue_svm_free(cl_command_queue queue, cl_uint count, void **pointers,
			       cl_callback free_function, void *data, cl_uint waits,
			       const cl_event *list, cl_event *slot)
{
	(void)queue;
	(void)count;
	(void)pointers;
	(void)free_function;
	(void)data;
	(void)waits;
	(void)list;
	(void)slot;
	return CL_SUCCESS;
}

static cl_int enqueue_svm_copy(cl_command_queue queue, cl_bool blocking, void *to, const void *from,
			       size_t size, cl_uint waits, const cl_event *list, cl_event *slot)
{
	(void)queue;
	(void)blocking;
	(void)to;
	(void)from;
	(void)size;
	(void)waits;
	(void)list;
	return add_event(slot);
}

static cl_int set_callback(cl_event handle, cl_int type, cl_callback callback, void *data)
{
	struct event *event = handle;

	(void)type;
	if (refuses_callbacks)
		return -30;
	event->callback = (void (*)(cl_event, cl_int, void *))callback;
	event->data = data;
	return CL_SUCCESS;
}

static cl_int retain_event(cl_event handle)
{
	((struct event *)handle)->references++;
	return CL_SUCCESS;
}

static cl_int release_event(cl_event handle)
{
	struct event *event = handle;

	if (--event->references == 0) {
		live_events--;
		free(event);
	}
	return CL_SUCCESS;
}

static cl_int profiling_info(cl_event handle, cl_profiling_info what, size_t size, void *value,
			     size_t *wanted)
{
	const struct event *event = handle;
	cl_ulong time = event->queued;

	(void)wanted;
	if ((seen_properties & CL_QUEUE_PROFILING_ENABLE) == 0)
		return -7;
	if (what == CL_PROFILING_START)
		time += 1000;
	else if (what == CL_PROFILING_END)
		time += 3000;
	memcpy(value, &time, size < sizeof(time) ? size : sizeof(time));
	return CL_SUCCESS;
}

static void complete_all(cl_int status)
{
	for (unsigned i = 0; i < pending_count; i++) {
		if (pending[i]->callback != NULL)
			pending[i]->callback(pending[i], status, pending[i]->data);
	}
	pending_count = 0;
}

static int start(void **state)
{
	const void *table;
	cl_uint given;

	(void)state;
	below.clGetDeviceInfo = get_device_info;
	below.clCreateCommandQueue = create_queue;
	below.clGetCommandQueueInfo = queue_info;
	below.clReleaseCommandQueue = release_queue;
	below.clGetKernelInfo = kernel_info;
	below.clGetKernelWorkGroupInfo = work_group_info;
	below.clGetProgramInfo = program_info;
	below.clCreateKernel = create_kernel;
	below.clReleaseProgram = release_program;
	below.clEnqueueNDRangeKernel = enqueue_kernel;
	below.clEnqueueWriteBuffer = enqueue_write;
	below.clGetContextInfo = context_info;
	below.clSVMAlloc = svm_alloc;
	below.clSVMFree = svm_free;
	below.clEnqueueSVMFree = enqueue_svm_free;
	below.clEnqueueSVMMemcpy = enqueue_svm_copy;
	below.clSetEventCallback = set_callback;
	below.clRetainEvent = retain_event;
	below.clReleaseEvent = release_event;
	below.clGetEventProfilingInfo = profiling_info;
	refuses_profiling = refuses_callbacks = fails = false;
	kernels_run = 0;
	atomic_store(&sink_wanted, UINT32_MAX);
	sink_start();
	if (clInitLayer((cl_uint)OPENCL_CALL_COUNT, &below, &given, &table) != CL_SUCCESS)
		return -1;
	ours = table;
	return 0;
}

static cl_command_queue queue_with(cl_command_queue_properties properties)
{
	cl_int result;
	cl_command_queue queue =
		ours->clCreateCommandQueue(&objects[4], &objects[1], properties, &result);

	assert_int_equal(result, CL_SUCCESS);
	return queue;
}

static cl_int run(cl_command_queue queue, cl_event *event)
{
	const size_t global[2] = {64, 8}, local[2] = {8, 4};

	return ours->clEnqueueNDRangeKernel(queue, &objects[2], 2, NULL, global, local, 0, NULL,
					    event);
}

static void layers_say_who_they_are(void **state)
{
	char name[16];
	cl_uint version;
	size_t size;

	(void)state;
	assert_int_equal(clGetLayerInfo(CL_LAYER_API_VERSION, sizeof(version), &version, &size), 0);
	assert_int_equal(version, 100);
	assert_int_equal(clGetLayerInfo(CL_LAYER_NAME, sizeof(name), name, NULL), 0);
	assert_string_equal(name, "kymo");
	assert_int_equal(clGetLayerInfo(CL_LAYER_NAME, 2, name, NULL), CL_INVALID_VALUE);
	assert_int_equal(clGetLayerInfo(1, 16, name, NULL), CL_INVALID_VALUE);
	assert_int_equal(clInitLayer(0, &below, &version, (const void **)&ours), CL_INVALID_VALUE);
}

static void functions_that_are_not_there_stay_away(void **state)
{
	(void)state;
	assert_null(ours->clCreatePipe);
	assert_non_null(ours->clCreateCommandQueue);
}

static void queues_look_as_asked_for(void **state)
{
	cl_command_queue_properties properties = 77;
	cl_command_queue queue = queue_with(0);

	(void)state;
	assert_int_equal(seen_properties, CL_QUEUE_PROFILING_ENABLE);
	ours->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				    NULL);
	assert_int_equal(properties, 0);
	queue = queue_with(CL_QUEUE_PROFILING_ENABLE);
	ours->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				    NULL);
	assert_int_equal(properties, CL_QUEUE_PROFILING_ENABLE);
}

static void a_device_without_profiling_has_no_times(void **state)
{
	cl_command_queue queue;

	(void)state;
	refuses_profiling = true;
	queue = queue_with(0);
	assert_int_equal(run(queue, NULL), CL_SUCCESS);
	complete_all(CL_COMPLETE);
	assert_int_equal(told.completed, 1);
	assert_int_equal(told.without_time, 1);
	assert_int_equal(live_events, 0);
}

static void kernels_end_with_their_event(void **state)
{
	cl_command_queue queue = queue_with(0);
	cl_event event;

	(void)state;
	assert_int_equal(run(queue, NULL), CL_SUCCESS);
	assert_int_equal(run(queue, &event), CL_SUCCESS);
	assert_int_equal(told.kernels, 2);
	assert_int_equal(told.completed, 0);
	assert_int_equal(opencl_get_in_flight_command_count(), 2);
	ours->clReleaseEvent(event); /* the program's own; ours keeps it alive */
	complete_all(CL_COMPLETE);
	assert_int_equal(told.completed, 2);
	assert_int_equal(told.without_time, 0);
	assert_int_equal(told.misused, 0);
	assert_int_equal(live_events, 0);
	assert_int_equal(opencl_get_in_flight_command_count(), 0);
	assert_int_equal(told.last_kernel.grid_threads[0], 64);
	assert_int_equal(told.last_kernel.grid_threads[1], 8);
	assert_int_equal(told.last_kernel.grid_threads[2], 1);
	assert_int_equal(told.last_kernel.group_threads[1], 4);
}

static void an_error_is_an_end_without_times(void **state)
{
	cl_command_queue queue = queue_with(0);

	(void)state;
	assert_int_equal(run(queue, NULL), CL_SUCCESS);
	complete_all(-5);
	assert_int_equal(told.completed, 1);
	assert_int_equal(told.without_time, 1);
	assert_int_equal(live_events, 0);
}

static void what_is_not_enqueued_is_not_told(void **state)
{
	cl_command_queue queue = queue_with(0);

	(void)state;
	fails = true;
	assert_int_equal(run(queue, NULL), -5);
	assert_int_equal(
		ours->clEnqueueWriteBuffer(queue, &objects[5], 0, 0, 10, "", 0, NULL, NULL), -5);
	assert_int_equal(told.failed, 1);
	assert_int_equal(told.copies_failed, 1);
	assert_int_equal(told.completed, 0);
	assert_int_equal(told.misused, 0);
	assert_int_equal(opencl_get_in_flight_command_count(), 0);
}

static void a_runtime_without_callbacks_loses_nothing_of_the_programs(void **state)
{
	cl_command_queue queue = queue_with(0);
	cl_event event;

	(void)state;
	refuses_callbacks = true;
	assert_int_equal(run(queue, &event), CL_SUCCESS);
	assert_int_equal(run(queue, NULL), CL_SUCCESS);
	assert_int_equal(told.completed, 2);
	assert_int_equal(told.without_time, 2);
	assert_int_equal(live_events, 1);
	ours->clReleaseEvent(event);
	assert_int_equal(live_events, 0);
	pending_count = 0;
}

static void nobody_wants_it(void **state)
{
	cl_command_queue queue = queue_with(0);

	(void)state;
	atomic_store(&sink_wanted, 0);
	assert_int_equal(run(queue, NULL), CL_SUCCESS);
	assert_int_equal(kernels_run, 1);
	assert_int_equal(pending_count, 0);
	assert_int_equal(told.kernels, 0);
}

static void copies_have_bytes_and_direction(void **state)
{
	cl_command_queue queue = queue_with(0);

	(void)state;
	assert_int_equal(
		ours->clEnqueueWriteBuffer(queue, &objects[5], 0, 0, 1234, "", 0, NULL, NULL),
		CL_SUCCESS);
	assert_int_equal(told.last_copy.direction, DEVICE_COPY_HOST_TO_DEVICE);
	assert_int_equal(told.copied_bytes, 1234);
	complete_all(CL_COMPLETE);
	assert_int_equal(told.copies_completed, 1);
}

static void programs_come_with_their_first_kernel(void **state)
{
	(void)state;
	assert_non_null(ours->clCreateKernel(&objects[3], "kernel_of_test", NULL));
	assert_int_equal(told.symbols, 1);
	assert_string_equal(told.last_symbol, "kernel_of_test");
	ours->clReleaseProgram(&objects[3]);
	assert_int_equal(told.misused, 0);
}

struct seen_argument {
	unsigned count;
	char text[512];
};

static int see(void *context, uint32_t number, const char *type, const char *name,
	       const void *value)
{
	struct seen_argument *seen = context;

	assert_int_equal(number, seen->count);
	assert_non_null(value);
	seen->count++;
	strcat(seen->text, type);
	strcat(seen->text, " ");
	strcat(seen->text, name);
	strcat(seen->text, ";");
	return 0;
}

static void arguments_have_types_and_names(void **state)
{
	const struct device_call_catalog *operations =
		device_find_call_catalog_of_service(DEVICE_SERVICE_CALLS_OPENCL);
	uint64_t values[6] = {0};
	const void *addresses[6];
	const void *const *list = addresses;
	struct seen_argument seen = {0};
	struct device_api_call_info call = {DEVICE_SERVICE_CALLS_OPENCL, 4, &list};

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		addresses[i] = &values[i];
	assert_string_equal(operations->name(4), "clCreateContext");
	assert_null(operations->name(-1));
	assert_null(operations->name((int32_t)operations->count));
	assert_int_equal(operations->arguments(&call, see, &seen), 0);
	assert_int_equal(seen.count, 6);
	assert_string_equal(seen.text, "const cl_context_properties * properties;cl_uint "
				       "num_devices;const cl_device_id * devices;cl_callback "
				       "pfn_notify;void * user_data;cl_int * errcode_ret;");
}

static enum device_copy_direction direction_of_svm_copy(cl_command_queue queue, void *to,
							const void *from)
{
	assert_int_equal(ours->clEnqueueSVMMemcpy(queue, 0, to, from, 16, 0, NULL, NULL),
			 CL_SUCCESS);
	complete_all(CL_COMPLETE);
	return told.last_copy.direction;
}

/* By where the addresses are: within an allocation, and as long as it is one. */
static void copies_of_shared_memory_have_their_direction(void **state)
{
	static char host[64];
	cl_command_queue queue = queue_with(0);
	char *first = ours->clSVMAlloc(&objects[4], 0, 4096, 0);
	char *second = ours->clSVMAlloc(&objects[4], 0, 64, 1);
	void *both[] = {first, second};

	(void)state;
	assert_int_equal(direction_of_svm_copy(queue, first, host), DEVICE_COPY_HOST_TO_DEVICE);
	assert_int_equal(told.last_copy.from, device_get_sink()->get_host_agent());
	assert_int_equal(told.last_copy.to, opencl_device_get_agent(1));
	assert_int_equal(direction_of_svm_copy(queue, host, first + 4080),
			 DEVICE_COPY_DEVICE_TO_HOST);
	assert_int_equal(told.last_copy.to, device_get_sink()->get_host_agent());
	assert_int_equal(direction_of_svm_copy(queue, second + 32, first + 100),
			 DEVICE_COPY_DEVICE_TO_DEVICE);
	assert_int_equal(direction_of_svm_copy(queue, second + 64, first),
			 DEVICE_COPY_DEVICE_TO_HOST);
	assert_int_equal(direction_of_svm_copy(queue, host, host + 16), DEVICE_COPY_HOST_TO_HOST);
	assert_int_equal(told.last_copy.from, told.last_copy.to);
	assert_int_equal(told.last_copy.from, device_get_sink()->get_host_agent());
	ours->clSVMFree(&objects[4], first);
	assert_int_equal(direction_of_svm_copy(queue, second, first), DEVICE_COPY_HOST_TO_DEVICE);
	assert_int_equal(ours->clEnqueueSVMFree(queue, 2, both, NULL, NULL, 0, NULL, NULL),
			 CL_SUCCESS);
	assert_int_equal(told.frees, 2);
	assert_int_equal(direction_of_svm_copy(queue, second, host), DEVICE_COPY_HOST_TO_HOST);
	assert_int_equal(told.misused, 0);
}

static bool note_that_there_is_one(void *context, const struct counting_event_info *event)
{
	(void)event;
	*(bool *)context = true;
	return false;
}

/* A tool may have asked for its counters by its agent before the program uses it. */
static void a_probed_device_keeps_its_number_and_its_agent(void **state)
{
	const device_handle agent = 4242;
	struct opencl_device_facts facts;
	bool has_counters = false;
	unsigned number;

	(void)state;
	opencl_read_device_facts(get_device_info, &objects[6], &facts);
	assert_string_equal(facts.model, "Test device");
	assert_int_equal(facts.type, 4);
	atomic_store(&sink_agent, agent);
	opencl_device_add_probed(&facts);
	number = opencl_device_find_number_of_agent(agent);
	assert_int_not_equal(number, 0);
	assert_null(opencl_device_find_by_number(number));
	assert_int_equal(opencl_counting.events(agent, note_that_there_is_one, &has_counters),
			 COUNTING_OK);
	assert_true(has_counters);
	assert_int_equal(opencl_device_find_or_add(&objects[6]), number);
	assert_ptr_equal(opencl_device_find_by_number(number), &objects[6]);
	assert_int_equal(opencl_device_find_or_add(&objects[6]), number);
	assert_int_not_equal(opencl_device_find_or_add(&objects[7]), number);
	atomic_store(&sink_agent, DEVICE_HANDLE_NONE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, start)
	const struct CMUnitTest tests[] = {
		TEST(layers_say_who_they_are),
		TEST(functions_that_are_not_there_stay_away),
		TEST(queues_look_as_asked_for),
		TEST(programs_come_with_their_first_kernel),
		TEST(a_device_without_profiling_has_no_times),
		TEST(kernels_end_with_their_event),
		TEST(an_error_is_an_end_without_times),
		TEST(what_is_not_enqueued_is_not_told),
		TEST(a_runtime_without_callbacks_loses_nothing_of_the_programs),
		TEST(nobody_wants_it),
		TEST(copies_have_bytes_and_direction),
		TEST(copies_of_shared_memory_have_their_direction),
		TEST(a_probed_device_keeps_its_number_and_its_agent),
		TEST(arguments_have_types_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
