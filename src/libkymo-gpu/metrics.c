/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See metrics.h. NVIDIA's devices by NVML, found at run time. Most readings cost less than a
 * microsecond; energy takes milliseconds, so a thread of its own reads it, once a second.
 */
#include "libkymo-gpu/metrics.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common/loader.h"
#include "common/loader_state.h"
#include "libkymo-gpu/file.h"

#define DEVICES_MAX                   64
#define SAMPLING_FREQUENCY_DEFAULT_HZ 10.0
#define SAMPLING_FREQUENCY_MAX_HZ     1000.0
#define ENERGY_SAMPLING_PERIOD_S      1
#define NVML_CLOCK_SM                 1
#define NVML_CLOCK_MEMORY             2

struct nvml_utilization {
	unsigned device, memory;
};

struct nvml_memory {
	unsigned long long total, unused, used;
};

/* nvml.h; all give 0 for success */
static struct {
	int (*Init_v2)(void);
	int (*DeviceGetCount_v2)(unsigned *count);
	int (*DeviceGetHandleByIndex_v2)(unsigned index, void **device);
	int (*DeviceGetPowerUsage)(void *device, unsigned *milliwatt);
	int (*DeviceGetTemperature)(void *device, int sensor, unsigned *celsius);
	int (*DeviceGetClockInfo)(void *device, int type, unsigned *megahertz);
	int (*DeviceGetUtilizationRates)(void *device, struct nvml_utilization *utilization);
	int (*DeviceGetMemoryInfo)(void *device, struct nvml_memory *memory);
	int (*DeviceGetTotalEnergyConsumption)(void *device, unsigned long long *millijoule);
} nvml_function_table;
static void *nvml_devices[DEVICES_MAX];
static unsigned nvml_device_count;
static double sampling_frequency_hz;
static _Atomic bool metrics_stop_requested_flag;

static bool load_nvml_and_find_devices(void)
{
	void *library = loader_dlopen_keeping_dlerror("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	unsigned count = 0;

	if (library == NULL)
		return false;
#define LOAD_NVML_FUNCTION(name)                                                                   \
	*(void **)&nvml_function_table.name = loader_find_symbol_in_handle(library, "nvml" #name); \
	if (nvml_function_table.name == NULL)                                                      \
	return false
	LOAD_NVML_FUNCTION(Init_v2);
	LOAD_NVML_FUNCTION(DeviceGetCount_v2);
	LOAD_NVML_FUNCTION(DeviceGetHandleByIndex_v2);
	LOAD_NVML_FUNCTION(DeviceGetPowerUsage);
	LOAD_NVML_FUNCTION(DeviceGetTemperature);
	LOAD_NVML_FUNCTION(DeviceGetClockInfo);
	LOAD_NVML_FUNCTION(DeviceGetUtilizationRates);
	LOAD_NVML_FUNCTION(DeviceGetMemoryInfo);
	LOAD_NVML_FUNCTION(DeviceGetTotalEnergyConsumption);
#undef LOAD_NVML_FUNCTION
	if (nvml_function_table.Init_v2() != 0 ||
	    nvml_function_table.DeviceGetCount_v2(&count) != 0)
		return false;
	for (unsigned i = 0; i < count && i < DEVICES_MAX; i++) {
		if (nvml_function_table.DeviceGetHandleByIndex_v2(
			    i, &nvml_devices[nvml_device_count]) == 0)
			nvml_device_count++;
	}
	return nvml_device_count != 0;
}

static void write_metric_record(unsigned device, enum gpu_metric_what what, double value)
{
	struct gpu_metric record = {.head = {GPU_RECORD_METRIC, sizeof(record), what},
				    .time = gpu_read_boottime_ns(),
				    .value = value,
				    .device = device};

	gpu_file_lock();
	gpu_file_write_record(&record.head);
	gpu_file_unlock();
}

static void write_metric_records_of_device(unsigned i)
{
	struct nvml_utilization utilization;
	struct nvml_memory memory;
	unsigned value;

	if (nvml_function_table.DeviceGetPowerUsage(nvml_devices[i], &value) == 0)
		write_metric_record(i, GPU_METRIC_POWER_W, value / 1000.0);
	if (nvml_function_table.DeviceGetTemperature(nvml_devices[i], 0, &value) == 0)
		write_metric_record(i, GPU_METRIC_TEMPERATURE_C, value);
	if (nvml_function_table.DeviceGetClockInfo(nvml_devices[i], NVML_CLOCK_SM, &value) == 0)
		write_metric_record(i, GPU_METRIC_SM_CLOCK_MHZ, value);
	if (nvml_function_table.DeviceGetClockInfo(nvml_devices[i], NVML_CLOCK_MEMORY, &value) == 0)
		write_metric_record(i, GPU_METRIC_MEMORY_CLOCK_MHZ, value);
	if (nvml_function_table.DeviceGetUtilizationRates(nvml_devices[i], &utilization) == 0) {
		write_metric_record(i, GPU_METRIC_UTILIZATION, utilization.device);
		write_metric_record(i, GPU_METRIC_MEMORY_UTILIZATION, utilization.memory);
	}
	if (nvml_function_table.DeviceGetMemoryInfo(nvml_devices[i], &memory) == 0)
		write_metric_record(i, GPU_METRIC_MEMORY_USED, (double)memory.used);
}

static void add_metrics_thread_cpu_time(void)
{
	static _Thread_local uint64_t told;
	struct timespec used;
	uint64_t ns;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	gpu_file_add_own_cpu_time(ns - told);
	told = ns;
}

static void *run_metrics_thread(void *unused)
{
	long period_ns = (long)(1e9 / sampling_frequency_hz);
	struct timespec pause = {period_ns / 1000000000, period_ns % 1000000000};

	while (!atomic_load(&metrics_stop_requested_flag)) {
		for (unsigned i = 0;
		     i < nvml_device_count && !atomic_load(&metrics_stop_requested_flag); i++)
			write_metric_records_of_device(i);
		add_metrics_thread_cpu_time();
		nanosleep(&pause, NULL);
	}
	return unused;
}

static void *run_energy_thread(void *unused)
{
	const struct timespec pause = {ENERGY_SAMPLING_PERIOD_S, 0};

	while (!atomic_load(&metrics_stop_requested_flag)) {
		for (unsigned i = 0; i < nvml_device_count; i++) {
			unsigned long long value;

			if (nvml_function_table.DeviceGetTotalEnergyConsumption(nvml_devices[i],
										&value) == 0 &&
			    !atomic_load(&metrics_stop_requested_flag))
				write_metric_record(i, GPU_METRIC_ENERGY_J, (double)value / 1000);
		}
		add_metrics_thread_cpu_time();
		nanosleep(&pause, NULL);
	}
	return unused;
}

static void *load_nvml_and_run_metrics_thread(void *unused)
{
	pthread_t thread;

	pthread_setname_np(pthread_self(), "kymo-nvml");
	if (!load_nvml_and_find_devices())
		return unused;
	if (pthread_create(&thread, NULL, run_energy_thread, NULL) == 0)
		pthread_detach(thread);
	return run_metrics_thread(unused);
}

/* Loading NVML takes 10 ms, so that also happens beside the program. */
void metrics_start_thread_unless_disabled(void)
{
	const char *asked = secure_getenv("KYMO_GPU_METRICS_FREQ");
	sigset_t all, before;
	pthread_t thread;

	sampling_frequency_hz = asked != NULL ? strtod(asked, NULL) : SAMPLING_FREQUENCY_DEFAULT_HZ;
	if (!(sampling_frequency_hz > 0))
		return;
	if (sampling_frequency_hz > SAMPLING_FREQUENCY_MAX_HZ)
		sampling_frequency_hz = SAMPLING_FREQUENCY_MAX_HZ;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, load_nvml_and_run_metrics_thread, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void metrics_stop(void)
{
	atomic_store(&metrics_stop_requested_flag, true);
}
