/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which devices OpenCL has, found by a process of our own (kymo-opencl-devices). A tool asks for
 * them before the program has used OpenCL: to start it in the program then would make threads,
 * which are not there in children of fork, and may wait for a lock of the loader's.
 *
 * The program does not notice: the process sends no SIGCHLD, is not among those that wait(2) waits
 * for, and has none of its descriptors.
 */
#ifndef KYMO_DEVICE_OPENCL_PROBE_H
#define KYMO_DEVICE_OPENCL_PROBE_H

#include "device/opencl/device_facts.h"

/* Returns how many; 0 as well where the process cannot be made or does not end in time. */
unsigned opencl_probe_devices(struct opencl_device_facts facts[OPENCL_DEVICES_MAX]);

#endif
