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

#include "libkymo-gpu/file.h"

#define DEVICES_MAX     64
#define FREQUENCY       10.0
#define FREQUENCY_MAX   1000.0
#define ENERGY_PERIOD_S 1
#define CLOCK_SM        1
#define CLOCK_MEMORY    2

struct utilization {
	unsigned device, memory;
};

struct memory {
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
	int (*DeviceGetUtilizationRates)(void *device, struct utilization *utilization);
	int (*DeviceGetMemoryInfo)(void *device, struct memory *memory);
	int (*DeviceGetTotalEnergyConsumption)(void *device, unsigned long long *millijoule);
} nvml;
static void *devices[DEVICES_MAX];
static unsigned device_count;
static double frequency;
static _Atomic bool has_ended;

static bool load(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	unsigned count = 0;

	if (library == NULL)
		return false;
#define FIND(name)                                                                                 \
	*(void **)&nvml.name = dlsym(library, "nvml" #name);                                       \
	if (nvml.name == NULL)                                                                     \
	return false
	FIND(Init_v2);
	FIND(DeviceGetCount_v2);
	FIND(DeviceGetHandleByIndex_v2);
	FIND(DeviceGetPowerUsage);
	FIND(DeviceGetTemperature);
	FIND(DeviceGetClockInfo);
	FIND(DeviceGetUtilizationRates);
	FIND(DeviceGetMemoryInfo);
	FIND(DeviceGetTotalEnergyConsumption);
#undef FIND
	if (nvml.Init_v2() != 0 || nvml.DeviceGetCount_v2(&count) != 0)
		return false;
	for (unsigned i = 0; i < count && i < DEVICES_MAX; i++) {
		if (nvml.DeviceGetHandleByIndex_v2(i, &devices[device_count]) == 0)
			device_count++;
	}
	return device_count != 0;
}

static void write_metric(unsigned device, enum gpu_metric_what what, double value)
{
	struct gpu_metric record = {.head = {GPU_RECORD_METRIC, sizeof(record), what},
				    .time = gpu_now(),
				    .value = value,
				    .device = device};

	gpu_file_lock();
	gpu_file_write(&record.head);
	gpu_file_unlock();
}

static void read_device(unsigned i)
{
	struct utilization utilization;
	struct memory memory;
	unsigned value;

	if (nvml.DeviceGetPowerUsage(devices[i], &value) == 0)
		write_metric(i, GPU_METRIC_POWER_W, value / 1000.0);
	if (nvml.DeviceGetTemperature(devices[i], 0, &value) == 0)
		write_metric(i, GPU_METRIC_TEMPERATURE_C, value);
	if (nvml.DeviceGetClockInfo(devices[i], CLOCK_SM, &value) == 0)
		write_metric(i, GPU_METRIC_SM_CLOCK_MHZ, value);
	if (nvml.DeviceGetClockInfo(devices[i], CLOCK_MEMORY, &value) == 0)
		write_metric(i, GPU_METRIC_MEMORY_CLOCK_MHZ, value);
	if (nvml.DeviceGetUtilizationRates(devices[i], &utilization) == 0) {
		write_metric(i, GPU_METRIC_UTILIZATION, utilization.device);
		write_metric(i, GPU_METRIC_MEMORY_UTILIZATION, utilization.memory);
	}
	if (nvml.DeviceGetMemoryInfo(devices[i], &memory) == 0)
		write_metric(i, GPU_METRIC_MEMORY_USED, (double)memory.used);
}

static void tell_cpu_time(void)
{
	static _Thread_local uint64_t told;
	struct timespec used;
	uint64_t ns;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	gpu_file_cpu(ns - told);
	told = ns;
}

static void *read_often(void *unused)
{
	long period_ns = (long)(1e9 / frequency);
	struct timespec pause = {period_ns / 1000000000, period_ns % 1000000000};

	while (!atomic_load(&has_ended)) {
		for (unsigned i = 0; i < device_count && !atomic_load(&has_ended); i++)
			read_device(i);
		tell_cpu_time();
		nanosleep(&pause, NULL);
	}
	return unused;
}

static void *read_energy(void *unused)
{
	const struct timespec pause = {ENERGY_PERIOD_S, 0};

	while (!atomic_load(&has_ended)) {
		for (unsigned i = 0; i < device_count; i++) {
			unsigned long long value;

			if (nvml.DeviceGetTotalEnergyConsumption(devices[i], &value) == 0 &&
			    !atomic_load(&has_ended))
				write_metric(i, GPU_METRIC_ENERGY_J, (double)value / 1000);
		}
		tell_cpu_time();
		nanosleep(&pause, NULL);
	}
	return unused;
}

static void *begin(void *unused)
{
	pthread_t thread;

	pthread_setname_np(pthread_self(), "kymo-nvml");
	if (!load())
		return unused;
	if (pthread_create(&thread, NULL, read_energy, NULL) == 0)
		pthread_detach(thread);
	return read_often(unused);
}

/* Loading NVML takes 10 ms, so that also happens beside the program. */
void metrics_start(void)
{
	const char *asked = getenv("KYMO_GPU_METRICS_FREQ");
	sigset_t all, before;
	pthread_t thread;

	frequency = asked != NULL ? strtod(asked, NULL) : FREQUENCY;
	if (!(frequency > 0))
		return;
	if (frequency > FREQUENCY_MAX)
		frequency = FREQUENCY_MAX;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, begin, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void metrics_stop(void)
{
	atomic_store(&has_ended, true);
}
