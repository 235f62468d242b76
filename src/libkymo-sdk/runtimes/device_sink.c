/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_sink.h. Handles of the sink are addresses of what emit.h gives, or ids.
 */
#include "libkymo-sdk/runtimes/device_sink.h"

#include <string.h>

#include "common/array.h"
#include "common/hot.h"
#include "core/base/ticks.h"
#include "device/device.h"
#include "device/registry/devices.h"
#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/runtimes/clients.h"
#include "libkymo-sdk/runtimes/cuda_as_hip.h"
#include "libkymo-sdk/runtimes/device_calls.h"
#include "libkymo-sdk/runtimes/markers.h"
#include "libkymo-sdk/runtimes/runtimes.h"
#include "libkymo-sdk/runtimes/start.h"
#include "libkymo-sdk/tables/domains.h"

static device_handle pointer_to_handle(const void *pointer)
{
	return (device_handle)(uintptr_t)pointer;
}

static void *handle_to_pointer(device_handle handle)
{
	return (void *)(uintptr_t)handle; // NOLINT: it was made of a pointer
}

static enum sdk_domain device_service_to_domain(enum device_service_kind service)
{
	static const enum sdk_domain domain_by_device_service[DEVICE_SERVICE_COUNT] = {
		[DEVICE_SERVICE_CALLS_OPENCL] = SDK_DOMAIN_OPENCL,
		[DEVICE_SERVICE_CALLS_CUDA_RUNTIME] = SDK_DOMAIN_CUDA_RUNTIME,
		[DEVICE_SERVICE_CALLS_CUDA_DRIVER] = SDK_DOMAIN_CUDA_DRIVER,
		[DEVICE_SERVICE_KERNELS] = SDK_DOMAIN_DISPATCH,
		[DEVICE_SERVICE_COPIES] = SDK_DOMAIN_COPY,
		[DEVICE_SERVICE_ALLOCATIONS] = SDK_DOMAIN_ALLOCATION,
		[DEVICE_SERVICE_PROGRAMS] = SDK_DOMAIN_CODE_OBJECT,
		[DEVICE_SERVICE_MARKERS] = SDK_DOMAIN_MARKER_CORE,
	};

	return service < DEVICE_SERVICE_COUNT ? domain_by_device_service[service] : SDK_DOMAIN_NONE;
}

KYMO_HOT static bool sink_is_operation_wanted(enum device_service_kind service, int32_t operation)
{
	enum sdk_domain domain = device_service_to_domain(service);

	/* Programs that were loaded before somebody asks are reported then: they are always kept.
	 */
	if (service == DEVICE_SERVICE_PROGRAMS)
		return true;
	if (service == DEVICE_SERVICE_MARKERS)
		return sdk_is_domain_wanted(SDK_DOMAIN_MARKER_CORE) ||
		       sdk_is_domain_wanted(SDK_DOMAIN_MARKER_CORE_RANGE);
	if (service == DEVICE_SERVICE_CALLS_CUDA_RUNTIME &&
	    (operation < 0 ? sdk_is_domain_wanted(SDK_DOMAIN_HIP_RUNTIME)
			   : sdk_is_cuda_call_wanted_as_hip(operation)))
		return true;
	return operation < 0 ? sdk_is_domain_wanted(domain)
			     : sdk_is_operation_wanted(domain, operation);
}

/* ---- agents and runtimes ---- */

static device_handle sink_register_agent(const struct device_agent *told)
{
	rocprofiler_agent_v0_t agent = {
		.type = told->is_gpu ? ROCPROFILER_AGENT_TYPE_GPU : ROCPROFILER_AGENT_TYPE_CPU,
		.cpu_cores_count = told->logical_cpu_count,
		.simd_count = told->compute_units * told->simds_per_unit,
		.cu_count = told->compute_units,
		.simd_per_cu = told->simds_per_unit,
		.wave_front_size = told->wave_size,
		.max_waves_per_cu = told->waves_per_unit,
		.max_waves_per_simd =
			told->simds_per_unit ? told->waves_per_unit / told->simds_per_unit : 0,
		.lds_size_in_kb = told->local_memory_kib,
		.num_xcc = told->is_gpu,
		.array_count = told->shader_engines,
		.num_shader_banks = told->shader_engines,
		.simd_arrays_per_engine = told->shader_engines ? 1 : 0,
		.cu_per_engine =
			told->shader_engines ? told->compute_units / told->shader_engines : 0,
		.vendor_id = (uint16_t)told->vendor_id,
		.device_id = (uint16_t)told->device_id,
		.domain = told->pci_domain,
		.location_id = told->pci_location,
		.max_engine_clk_ccompute = told->cpu_core_clock_mhz,
		.max_engine_clk_fcompute = told->clock_mhz,
		.workgroup_max_size = told->group_size,
		.local_mem_size = told->memory_bytes,
		.name = told->name,
		.vendor_name = told->vendor_name,
		.product_name = told->product_name,
		.model_name = told->model_name,
	};

	rocprofiler_agent_id_t id;

	agent.workgroup_max_dim =
		(rocprofiler_dim3_t){told->group_dimensions_max[0], told->group_dimensions_max[1],
				     told->group_dimensions_max[2]};
	agent.grid_max_dim =
		(rocprofiler_dim3_t){told->grid_dimensions_max[0], told->grid_dimensions_max[1],
				     told->grid_dimensions_max[2]};
	agent.grid_max_size = told->grid_dimensions_max[0];
	memcpy(&agent.uuid, told->uuid, sizeof(agent.uuid));
	id = sdk_agent_register(&agent, true);
	sdk_agent_add_runtime(id, told->runtime);
	return id.handle;
}

static device_handle sink_get_host_agent_handle(void)
{
	return sdk_get_host_agent_id().handle;
}

static void sink_report_runtime_ready_to_tools(enum device_runtime_kind runtime, uint64_t version)
{
	/* Upstream knows only AMD's runtimes: CUDA and OpenCL are reported as HIP, which they stand
	 * for. */
	if (runtime != DEVICE_RUNTIME_HOST)
		sdk_report_runtime_ready(ROCPROFILER_RUNTIME_INITIALIZATION_HIP, version, 0);
	sdk_counting_handle_runtime_ready();
}

static void sink_announce_runtime_tables(enum device_runtime_kind runtime, uint64_t version,
					 void **tables, uint64_t count)
{
	uint64_t id;

	(void)runtime; /* only HSA has any */
	sdk_runtime_announce("hsa", version, tables, count, true, &id);
	sdk_counting_handle_runtime_ready();
}

static void sink_register_tools_for_runtime(enum device_runtime_kind runtime)
{
	(void)runtime;
	if (sdk_get_init_status() == 0 && sdk_is_any_tool_requested())
		sdk_register_tools_once(NULL);
}

/* ---- kernels and copies ---- */

static rocprofiler_dim3_t array_to_dimensions(const uint32_t *three)
{
	return (rocprofiler_dim3_t){three[0], three[1], three[2]};
}

static rocprofiler_kernel_dispatch_info_t
kernel_to_dispatch_info(const struct device_kernel_launch *kernel)
{
	return (rocprofiler_kernel_dispatch_info_t){
		.agent_id = {kernel->agent},
		.queue_id = {kernel->queue},
		.kernel_id = kernel->symbol,
		.private_segment_size = kernel->private_bytes,
		.group_segment_size = kernel->group_bytes,
		.workgroup_size = array_to_dimensions(kernel->group_threads),
		.grid_size = array_to_dimensions(kernel->grid_threads),
	};
}

static struct sdk_memory_copy_info device_copy_to_sdk_copy(const struct device_copy *copy)
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
	uint64_t host = copy->from && copy->to ? 0 : sink_get_host_agent_handle();

	return (struct sdk_memory_copy_info){
		.operation = operations[copy->direction],
		.from = {copy->from ? copy->from : host},
		.to = {copy->to ? copy->to : host},
		.bytes = copy->bytes,
		.from_address = copy->from_address,
		.to_address = copy->to_address,
	};
}

KYMO_HOT static device_handle
sink_report_kernel_enqueue_to_tools(const struct device_kernel_launch *kernel)
{
	rocprofiler_kernel_dispatch_info_t info;

	if (!sdk_is_domain_wanted(SDK_DOMAIN_DISPATCH))
		return DEVICE_HANDLE_NONE;
	info = kernel_to_dispatch_info(kernel);
	return pointer_to_handle(sdk_dispatch_report_enqueue(&info));
}

KYMO_HOT static void sink_report_kernel_submitted_to_tools(device_handle kernel, bool failed)
{
	if (kernel && failed)
		sdk_counting_finish_for_completed_work(handle_to_pointer(kernel), 0, 0);
	if (kernel)
		sdk_dispatch_report_submitted(handle_to_pointer(kernel), failed);
}

static void sink_report_kernel_complete_to_tools(device_handle kernel,
						 const struct device_kernel_launch *ran,
						 uint64_t start, uint64_t end)
{
	rocprofiler_kernel_dispatch_info_t info;

	if (!kernel)
		return;
	if (ran)
		info = kernel_to_dispatch_info(ran);
	sdk_counting_finish_for_completed_work(handle_to_pointer(kernel), start, end);
	sdk_dispatch_report_complete(handle_to_pointer(kernel), ran ? &info : NULL, start, end);
}

static device_handle sink_add_another_kernel_of_launch(device_handle kernel)
{
	struct sdk_device_work *again =
		kernel ? sdk_work_duplicate(handle_to_pointer(kernel)) : NULL;

	if (again)
		sdk_counting_copy_state_to_work(handle_to_pointer(kernel), again);
	return pointer_to_handle(again);
}

static device_handle sink_report_copy_begin_to_tools(const struct device_copy *copy)
{
	struct sdk_memory_copy_info told;

	if (!sdk_is_domain_wanted(SDK_DOMAIN_COPY))
		return DEVICE_HANDLE_NONE;
	told = device_copy_to_sdk_copy(copy);
	return pointer_to_handle(sdk_copy_report_begin(&told));
}

static void sink_report_copy_complete_to_tools(device_handle copy, const struct device_copy *ran,
					       uint64_t start, uint64_t end)
{
	struct sdk_memory_copy_info told;

	if (!copy)
		return;
	if (ran)
		told = device_copy_to_sdk_copy(ran);
	sdk_copy_report_complete(handle_to_pointer(copy), ran ? &told : NULL, start, end);
}

static void sink_cancel_copy(device_handle copy)
{
	if (copy)
		sdk_work_cancel(handle_to_pointer(copy));
}

KYMO_HOT static device_handle sink_create_correlation(void)
{
	return pointer_to_handle(sdk_work_create_for_call());
}

static void sink_release_correlation(device_handle correlation)
{
	if (!correlation)
		return;
	sdk_counting_free_state_of_work(handle_to_pointer(correlation));
	sdk_work_release(handle_to_pointer(correlation));
}

/* Work whose launch was not seen gets a correlation of its own, for the contexts of now. */
static struct sdk_device_work *find_or_create_work(device_handle correlation)
{
	return correlation ? handle_to_pointer(correlation) : sdk_work_create_without_call();
}

static void sink_report_finished_kernel_to_tools(device_handle correlation,
						 const struct device_kernel_launch *kernel,
						 uint64_t start, uint64_t end)
{
	struct sdk_device_work *work = find_or_create_work(correlation);
	rocprofiler_kernel_dispatch_info_t info = kernel_to_dispatch_info(kernel);

	if (work)
		sdk_work_report_dispatch_completion(work, &info, start, end);
	if (work && !correlation)
		sdk_work_release(work);
}

static void sink_report_finished_copy_to_tools(device_handle correlation,
					       const struct device_copy *copy, uint64_t start,
					       uint64_t end)
{
	struct sdk_device_work *work = find_or_create_work(correlation);
	struct sdk_memory_copy_info told = device_copy_to_sdk_copy(copy);

	if (work)
		sdk_work_report_copy(work, &told, start, end);
	if (work && !correlation)
		sdk_work_release(work);
}

static void sink_report_allocation_to_tools(const struct device_allocation *allocation)
{
	static const rocprofiler_memory_allocation_operation_t operations[] = {
		[DEVICE_ALLOCATE] = ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE,
		[DEVICE_ALLOCATE_VIRTUAL] = ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE,
		[DEVICE_FREE] = ROCPROFILER_MEMORY_ALLOCATION_FREE,
		[DEVICE_FREE_VIRTUAL] = ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE,
	};

	sdk_report_allocation(operations[allocation->operation],
			      (rocprofiler_agent_id_t){allocation->agent}, allocation->address,
			      allocation->bytes, allocation->start, allocation->end);
}

/* ---- programs ---- */

static device_handle sink_add_program(const struct device_program *program)
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
	uint64_t id = sdk_code_object_add(&data);

	/* Its kernels follow one by one, and are reported as they come. */
	sdk_code_object_complete_and_report(id);
	return id;
}

static device_handle sink_add_kernel_symbol(const struct device_symbol *symbol)
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

	return sdk_kernel_symbol_add(&data);
}

static void sink_report_program_unload_to_tools(device_handle program)
{
	if (program)
		sdk_code_object_report_unload(program);
}

/* ---- the rest ---- */

static uint64_t sink_report_marker_to_tools(enum device_marker_kind marker, const char *message,
					    uint64_t range)
{
	switch (marker) {
	case DEVICE_MARKER_MARK:
		sdk_marker_report_mark(message);
		return 0;
	case DEVICE_MARKER_PUSH:
		sdk_marker_report_range_push(message);
		return 0;
	case DEVICE_MARKER_POP:
		sdk_marker_report_range_pop();
		return 0;
	case DEVICE_MARKER_START:
		return sdk_marker_report_range_start(message);
	case DEVICE_MARKER_STOP:
		sdk_marker_report_range_stop(range);
		return 0;
	}
	return 0;
}

static void sink_notify_thread_starting(void)
{
	sdk_thread_notify_creating(ROCPROFILER_LIBRARY);
}

static void sink_notify_thread_started(void)
{
	sdk_thread_notify_created(ROCPROFILER_LIBRARY);
}

static void sink_log_error_of_runtime(enum device_runtime_kind runtime, const char *text)
{
	static const char *const names[] = {"host", "OpenCL", "CUDA", "HSA"};

	sdk_print_log_line(SDK_LOG_ERROR, "%s: %s",
			   (unsigned)runtime < ARRAY_SIZE(names) ? names[runtime] : "?", text);
}

static const struct device_sink sdk_device_sink = {
	.now = sdk_clock_read_now_ns,
	.is_wanted = sink_is_operation_wanted,
	.agent = sink_register_agent,
	.get_host_agent = sink_get_host_agent_handle,
	.runtime_ready = sink_report_runtime_ready_to_tools,
	.runtime_tables_ready = sink_announce_runtime_tables,
	.call_enter = sdk_device_call_enter,
	.call_exit = sdk_device_call_exit,
	.kernel_enqueue = sink_report_kernel_enqueue_to_tools,
	.kernel_submitted = sink_report_kernel_submitted_to_tools,
	.kernel_complete = sink_report_kernel_complete_to_tools,
	.kernel_added_to_launch = sink_add_another_kernel_of_launch,
	.copy_begin = sink_report_copy_begin_to_tools,
	.copy_complete = sink_report_copy_complete_to_tools,
	.copy_failed = sink_cancel_copy,
	.correlation_open = sink_create_correlation,
	.correlation_close = sink_release_correlation,
	.kernel_record = sink_report_finished_kernel_to_tools,
	.copy_record = sink_report_finished_copy_to_tools,
	.allocation_event = sink_report_allocation_to_tools,
	.program_load = sink_add_program,
	.kernel_symbol = sink_add_kernel_symbol,
	.program_unload = sink_report_program_unload_to_tools,
	.marker_event = sink_report_marker_to_tools,
	.tool_thread_starting = sink_notify_thread_starting,
	.tool_thread_started = sink_notify_thread_started,
	.exclude_calling_thread = sdk_thread_exclude_own_from_reports,
	.end_tools_before_runtime = sdk_register_finalizers,
	.say = sink_log_error_of_runtime,
	.counting = &sdk_counting_sink,
};

static void flush_device_backends(void)
{
	device_flush_all_backends(false, 0);
}

void sdk_backends_connect(void)
{
	static const struct sdk_backend_callbacks backends = {
		.flush = flush_device_backends, .wanted = device_notify_wanted_services_changed};

	sdk_set_backend_callbacks(&backends);
	device_set_sink(&sdk_device_sink, sink_register_tools_for_runtime);
}

void sdk_backends_reset_after_fork(void)
{
	sdk_counting_reset_after_fork();
	device_tell_backends_of_fork();
}

void sdk_backends_drain(uint64_t timeout_ns)
{
	uint64_t deadline = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	if (!sdk_work_get_in_flight_count()) {
		device_flush_all_backends(false, 0);
		return;
	}
	device_flush_all_backends(true, timeout_ns);
	if (!sdk_work_wait_until_none_in_flight(deadline))
		sdk_print_log_line(SDK_LOG_WARNING,
				   "%llu kernels or copies had not ended when the tool did",
				   (unsigned long long)sdk_work_get_in_flight_count());
}

void sdk_backends_finish(void)
{
	device_finish_all_backends();
	sdk_counting_report_losses();
}
