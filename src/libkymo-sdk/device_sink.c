/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_sink.h. Handles of the sink are addresses of what emit.h gives, or ids.
 */
#include "libkymo-sdk/device_sink.h"

#include <string.h>

#include "common/hot.h"
#include "core/ticks.h"
#include "device/device.h"
#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/cuda_as_hip.h"
#include "libkymo-sdk/device_calls.h"
#include "libkymo-sdk/domains.h"
#include "libkymo-sdk/markers.h"
#include "libkymo-sdk/runtimes.h"
#include "libkymo-sdk/start.h"
#include "libkymo-sdk/state.h"
#include "libkymo-sdk/thread.h"

static device_handle to_handle(const void *pointer)
{
	return (device_handle)(uintptr_t)pointer;
}

static void *from_handle(device_handle handle)
{
	return (void *)(uintptr_t)handle; // NOLINT: it was made of a pointer
}

static enum sdk_domain sink_domain(enum device_service service)
{
	static const enum sdk_domain domains[DEVICE_SERVICE_COUNT] = {
		[DEVICE_SERVICE_CALLS_OPENCL] = SDK_DOMAIN_OPENCL,
		[DEVICE_SERVICE_CALLS_CUDA_RUNTIME] = SDK_DOMAIN_CUDA_RUNTIME,
		[DEVICE_SERVICE_CALLS_CUDA_DRIVER] = SDK_DOMAIN_CUDA_DRIVER,
		[DEVICE_SERVICE_KERNELS] = SDK_DOMAIN_DISPATCH,
		[DEVICE_SERVICE_COPIES] = SDK_DOMAIN_COPY,
		[DEVICE_SERVICE_ALLOCATIONS] = SDK_DOMAIN_ALLOCATION,
		[DEVICE_SERVICE_PROGRAMS] = SDK_DOMAIN_CODE_OBJECT,
		[DEVICE_SERVICE_MARKERS] = SDK_DOMAIN_MARKER_CORE,
	};

	return service < DEVICE_SERVICE_COUNT ? domains[service] : SDK_DOMAIN_NONE;
}

KYMO_HOT static bool sink_wants(enum device_service service, int32_t operation)
{
	enum sdk_domain domain = sink_domain(service);

	/* Programs that were loaded before somebody asks are told then: they are always kept. */
	if (service == DEVICE_SERVICE_PROGRAMS)
		return true;
	if (service == DEVICE_SERVICE_MARKERS)
		return sdk_wants_any(SDK_DOMAIN_MARKER_CORE) ||
		       sdk_wants_any(SDK_DOMAIN_MARKER_CORE_RANGE);
	if (service == DEVICE_SERVICE_CALLS_CUDA_RUNTIME &&
	    (operation < 0 ? sdk_wants_any(SDK_DOMAIN_HIP_RUNTIME)
			   : sdk_cuda_as_hip_wanted(operation)))
		return true;
	return operation < 0 ? sdk_wants_any(domain) : sdk_wants(domain, operation);
}

/* ---- agents and runtimes ---- */

static device_handle sink_agent(const struct device_agent *told)
{
	rocprofiler_agent_v0_t agent = {
		.type = told->is_gpu ? ROCPROFILER_AGENT_TYPE_GPU : ROCPROFILER_AGENT_TYPE_CPU,
		.cpu_cores_count = told->cores,
		.simd_count = told->compute_units * told->simds_per_unit,
		.cu_count = told->compute_units,
		.simd_per_cu = told->simds_per_unit,
		.wave_front_size = told->wave_size,
		.max_waves_per_cu = told->waves_per_unit,
		.max_waves_per_simd =
			told->simds_per_unit ? told->waves_per_unit / told->simds_per_unit : 0,
		.lds_size_in_kb = told->local_memory_kib,
		.num_xcc = told->is_gpu,
		.array_count = told->engines,
		.num_shader_banks = told->engines,
		.simd_arrays_per_engine = told->engines ? 1 : 0,
		.cu_per_engine = told->engines ? told->compute_units / told->engines : 0,
		.vendor_id = (uint16_t)told->vendor_id,
		.device_id = (uint16_t)told->device_id,
		.domain = told->pci_domain,
		.location_id = told->pci_location,
		.max_engine_clk_ccompute = told->core_clock_mhz,
		.max_engine_clk_fcompute = told->clock_mhz,
		.workgroup_max_size = told->group_size,
		.local_mem_size = told->memory_bytes,
		.name = told->name,
		.vendor_name = told->vendor_name,
		.product_name = told->product_name,
		.model_name = told->model_name,
	};

	rocprofiler_agent_id_t id;

	agent.workgroup_max_dim = (rocprofiler_dim3_t){
		told->group_dimensions[0], told->group_dimensions[1], told->group_dimensions[2]};
	agent.grid_max_dim = (rocprofiler_dim3_t){
		told->grid_dimensions[0], told->grid_dimensions[1], told->grid_dimensions[2]};
	agent.grid_max_size = told->grid_dimensions[0];
	memcpy(&agent.uuid, told->uuid, sizeof(agent.uuid));
	id = sdk_agent_register(&agent, true);
	sdk_agent_add_runtime(id, told->runtime);
	return id.handle;
}

static device_handle sink_host_agent(void)
{
	return sdk_agent_host().handle;
}

static void sink_runtime_ready(enum device_runtime runtime, uint64_t version)
{
	/* Upstream knows only AMD's runtimes: CUDA and OpenCL are told as HIP, which they stand
	 * for. */
	if (runtime != DEVICE_RUNTIME_HOST)
		sdk_runtime_ready(ROCPROFILER_RUNTIME_INITIALIZATION_HIP, version, 0);
	sdk_counting_runtime_ready();
}

static void sink_runtime_tables(enum device_runtime runtime, uint64_t version, void **tables,
				uint64_t count)
{
	uint64_t id;

	(void)runtime; /* only HSA has any */
	sdk_runtime_announce("hsa", version, tables, count, true, &id);
	sdk_counting_runtime_ready();
}

static void sink_runtime_found(enum device_runtime runtime)
{
	(void)runtime;
	if (sdk_init_status() == 0 && sdk_tools_are_asked_for())
		sdk_register(NULL);
}

/* ---- kernels and copies ---- */

static rocprofiler_dim3_t sink_dimensions(const uint32_t *three)
{
	return (rocprofiler_dim3_t){three[0], three[1], three[2]};
}

static rocprofiler_kernel_dispatch_info_t sink_dispatch(const struct device_kernel *kernel)
{
	return (rocprofiler_kernel_dispatch_info_t){
		.agent_id = {kernel->agent},
		.queue_id = {kernel->queue},
		.kernel_id = kernel->symbol,
		.private_segment_size = kernel->private_bytes,
		.group_segment_size = kernel->group_bytes,
		.workgroup_size = sink_dimensions(kernel->group),
		.grid_size = sink_dimensions(kernel->grid),
	};
}

static struct sdk_copy sink_copy(const struct device_copy *copy)
{
	static const rocprofiler_memory_copy_operation_t operations[] = {
		[DEVICE_COPY_OTHER] = ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE,
		[DEVICE_COPY_HOST_TO_HOST] = ROCPROFILER_MEMORY_COPY_HOST_TO_HOST,
		[DEVICE_COPY_HOST_TO_DEVICE] = ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE,
		[DEVICE_COPY_DEVICE_TO_HOST] = ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST,
		[DEVICE_COPY_DEVICE_TO_DEVICE] = ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE,
		/* Upstream has no operation for it: AMD's runtimes fill by kernels. */
		[DEVICE_COPY_FILL] = ROCPROFILER_MEMORY_COPY_NONE,
	};
	uint64_t host = copy->from && copy->to ? 0 : sink_host_agent();

	return (struct sdk_copy){
		.operation = operations[copy->direction],
		.from = {copy->from ? copy->from : host},
		.to = {copy->to ? copy->to : host},
		.bytes = copy->bytes,
		.from_address = copy->from_address,
		.to_address = copy->to_address,
	};
}

KYMO_HOT static device_handle sink_kernel_enqueue(const struct device_kernel *kernel)
{
	rocprofiler_kernel_dispatch_info_t info;

	if (!sdk_wants_any(SDK_DOMAIN_DISPATCH))
		return DEVICE_NONE;
	info = sink_dispatch(kernel);
	return to_handle(sdk_dispatch_enqueue(&info));
}

KYMO_HOT static void sink_kernel_submitted(device_handle kernel, bool failed)
{
	if (kernel && failed)
		sdk_counting_ends(from_handle(kernel), 0, 0);
	if (kernel)
		sdk_dispatch_submitted(from_handle(kernel), failed);
}

static void sink_kernel_complete(device_handle kernel, const struct device_kernel *ran,
				 uint64_t start, uint64_t end)
{
	rocprofiler_kernel_dispatch_info_t info;

	if (!kernel)
		return;
	if (ran)
		info = sink_dispatch(ran);
	sdk_counting_ends(from_handle(kernel), start, end);
	sdk_dispatch_complete(from_handle(kernel), ran ? &info : NULL, start, end);
}

static device_handle sink_kernel_again(device_handle kernel)
{
	struct sdk_work *again = kernel ? sdk_work_again(from_handle(kernel)) : NULL;

	if (again)
		sdk_counting_again(from_handle(kernel), again);
	return to_handle(again);
}

static device_handle sink_copy_begin(const struct device_copy *copy)
{
	struct sdk_copy told;

	if (!sdk_wants_any(SDK_DOMAIN_COPY))
		return DEVICE_NONE;
	told = sink_copy(copy);
	return to_handle(sdk_copy_begin(&told));
}

static void sink_copy_complete(device_handle copy, const struct device_copy *ran, uint64_t start,
			       uint64_t end)
{
	struct sdk_copy told;

	if (!copy)
		return;
	if (ran)
		told = sink_copy(ran);
	sdk_copy_complete(from_handle(copy), ran ? &told : NULL, start, end);
}

static void sink_copy_failed(device_handle copy)
{
	if (copy)
		sdk_work_cancel(from_handle(copy));
}

KYMO_HOT static device_handle sink_correlation_open(void)
{
	return to_handle(sdk_work_open());
}

static void sink_correlation_close(device_handle correlation)
{
	if (!correlation)
		return;
	sdk_counting_forget(from_handle(correlation));
	sdk_work_release(from_handle(correlation));
}

/* Work whose launch was not seen gets a correlation of its own, for the contexts of now. */
static struct sdk_work *sink_correlation(device_handle correlation)
{
	return correlation ? from_handle(correlation) : sdk_work_open_unknown();
}

static void sink_kernel_record(device_handle correlation, const struct device_kernel *kernel,
			       uint64_t start, uint64_t end)
{
	struct sdk_work *work = sink_correlation(correlation);
	rocprofiler_kernel_dispatch_info_t info = sink_dispatch(kernel);

	if (work)
		sdk_work_dispatch(work, &info, start, end);
	if (work && !correlation)
		sdk_work_release(work);
}

static void sink_copy_record(device_handle correlation, const struct device_copy *copy,
			     uint64_t start, uint64_t end)
{
	struct sdk_work *work = sink_correlation(correlation);
	struct sdk_copy told = sink_copy(copy);

	if (work)
		sdk_work_copy(work, &told, start, end);
	if (work && !correlation)
		sdk_work_release(work);
}

static void sink_allocation(const struct device_allocation *allocation)
{
	static const rocprofiler_memory_allocation_operation_t operations[] = {
		[DEVICE_ALLOCATE] = ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE,
		[DEVICE_ALLOCATE_VIRTUAL] = ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE,
		[DEVICE_FREE] = ROCPROFILER_MEMORY_ALLOCATION_FREE,
		[DEVICE_FREE_VIRTUAL] = ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE,
	};

	sdk_allocation(operations[allocation->operation],
		       (rocprofiler_agent_id_t){allocation->agent}, allocation->address,
		       allocation->bytes, allocation->start, allocation->end);
}

/* ---- programs ---- */

static device_handle sink_program_load(const struct device_program *program)
{
	rocprofiler_callback_tracing_code_object_load_data_t data = {
		.size = sizeof(data),
		.agent_id = {program->agent},
		.uri = program->uri,
		.load_base = (uint64_t)(uintptr_t)program->image,
		.load_size = program->image_size,
		.storage_type = ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY,
		.memory_base = (uint64_t)(uintptr_t)program->image,
		.memory_size = program->image_size,
	};
	uint64_t id = sdk_code_object_load(&data);

	/* Its kernels follow one by one, and are told as they come. */
	sdk_code_object_complete(id);
	return id;
}

static device_handle sink_kernel_symbol(const struct device_symbol *symbol)
{
	rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t data = {
		.size = sizeof(data),
		.code_object_id = symbol->program,
		.kernel_name = symbol->name,
		.kernel_object = symbol->object,
		.kernarg_segment_size = symbol->argument_bytes,
		.kernarg_segment_alignment = symbol->argument_alignment,
		.group_segment_size = symbol->group_bytes,
		.private_segment_size = symbol->private_bytes,
		.arch_vgpr_count = symbol->registers,
	};

	return sdk_kernel_symbol(&data);
}

static void sink_program_unload(device_handle program)
{
	if (program)
		sdk_code_object_unload(program);
}

/* ---- the rest ---- */

static uint64_t sink_marker(enum device_marker marker, const char *message, uint64_t range)
{
	switch (marker) {
	case DEVICE_MARKER_MARK:
		sdk_marker_mark(message);
		return 0;
	case DEVICE_MARKER_PUSH:
		sdk_marker_push(message);
		return 0;
	case DEVICE_MARKER_POP:
		sdk_marker_pop();
		return 0;
	case DEVICE_MARKER_START:
		return sdk_marker_start(message);
	case DEVICE_MARKER_STOP:
		sdk_marker_stop(range);
		return 0;
	}
	return 0;
}

static void sink_thread_starting(void)
{
	sdk_thread_creating(ROCPROFILER_LIBRARY);
}

static void sink_thread_started(void)
{
	sdk_thread_created(ROCPROFILER_LIBRARY);
}

static void sink_say(enum device_runtime runtime, const char *text)
{
	static const char *const names[] = {"host", "OpenCL", "CUDA", "HSA"};

	sdk_say(SDK_LOG_ERROR, "%s: %s",
		(unsigned)runtime < sizeof(names) / sizeof(names[0]) ? names[runtime] : "?", text);
}

static const struct device_sink sink = {
	.now = sdk_now,
	.wants = sink_wants,
	.agent = sink_agent,
	.host_agent = sink_host_agent,
	.runtime_ready = sink_runtime_ready,
	.runtime_tables = sink_runtime_tables,
	.call_enter = sdk_device_call_enter,
	.call_exit = sdk_device_call_exit,
	.kernel_enqueue = sink_kernel_enqueue,
	.kernel_submitted = sink_kernel_submitted,
	.kernel_complete = sink_kernel_complete,
	.kernel_again = sink_kernel_again,
	.copy_begin = sink_copy_begin,
	.copy_complete = sink_copy_complete,
	.copy_failed = sink_copy_failed,
	.correlation_open = sink_correlation_open,
	.correlation_close = sink_correlation_close,
	.kernel_record = sink_kernel_record,
	.copy_record = sink_copy_record,
	.allocation = sink_allocation,
	.program_load = sink_program_load,
	.kernel_symbol = sink_kernel_symbol,
	.program_unload = sink_program_unload,
	.marker = sink_marker,
	.thread_starting = sink_thread_starting,
	.thread_started = sink_thread_started,
	.own_thread = sdk_thread_is_own,
	.end_before_runtime = sdk_start_finalizers_again,
	.say = sink_say,
	.counting = &sdk_counting_sink,
};

void sdk_device_start(void)
{
	device_start(&sink, sink_runtime_found);
}

void sdk_device_forked(void)
{
	sdk_counting_forked();
	device_forked();
}

void sdk_device_wanted(void)
{
	device_wanted_changed();
}

void sdk_device_flush(void)
{
	device_flush(false, 0);
}

void sdk_device_drain(uint64_t timeout_ns)
{
	uint64_t deadline = ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	if (!sdk_work_in_flight()) {
		device_flush(false, 0);
		return;
	}
	device_flush(true, timeout_ns);
	if (!sdk_work_wait(deadline))
		sdk_say(SDK_LOG_WARNING, "%llu kernels or copies had not ended when the tool did",
			(unsigned long long)sdk_work_in_flight());
}

void sdk_device_finish(void)
{
	device_finish();
	sdk_counting_report();
}
