/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin through NCCL's own loader and callers, where a libnccl.so.2 with symbols is installed;
 * skipped elsewhere. No GPU is needed: what opens plugins and calls them are local functions of
 * libnccl, found by its symbol table, which touch few members of the communicator they are given.
 * That one is memory of zeros here.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "drive.h"

#define SKIPPED            77
#define COMMUNICATOR_SIZE  (16u << 20) /* struct ncclComm has some 100 KB */
#define PROXY_CONTROL_IDLE 13

/* The first members of NCCL 2.28's struct ncclInfo (src/include/info.h), to 2.30 at least. */
struct nccl_info {
	int function;
	const char *name;
	const void *send;
	void *receive;
	size_t count;
	int data_type, operation, root;
	void *communicator, *stream;
	uint8_t more[256];
};

static struct {
	int (*init)(void *communicator);
	int (*finalize)(void *communicator);
	int (*start_control)(void *context, void **handle);
	int (*state_control)(void *handle, int appended, int state);
	int (*stop_control)(void *handle);
	/* 2.28 and later */
	int (*start_group)(struct nccl_info *info, bool captured);
	int (*start_collective)(struct nccl_info *info, bool captured);
	int (*stop_collective)(void);
	int (*stop_group)(void);
} nccl;

static const struct {
	const char *name;
	void *function;
} wanted[] = {
	{"_Z22ncclProfilerPluginInitP8ncclComm", &nccl.init},
	{"_Z26ncclProfilerPluginFinalizeP8ncclComm", &nccl.finalize},
	{"_Z31ncclProfilerStartProxyCtrlEventPvPS_", &nccl.start_control},
	{"_Z37ncclProfilerRecordProxyCtrlEventStatePvi24ncclProfilerEventState_t",
	 &nccl.state_control},
	{"_Z30ncclProfilerStopProxyCtrlEventPv", &nccl.stop_control},
	{"_Z30ncclProfilerStartGroupApiEventP8ncclInfob", &nccl.start_group},
	{"_Z29ncclProfilerStartCollApiEventP8ncclInfob", &nccl.start_collective},
	{"_Z28ncclProfilerStopCollApiEventv", &nccl.stop_collective},
	{"_Z29ncclProfilerStopGroupApiEventv", &nccl.stop_group},
};

static int version;

/* ---- local symbols of a loaded file ---- */

static void take_symbols(const uint8_t *file, size_t size, uint64_t base)
{
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);

	if (header->e_shoff + header->e_shnum * sizeof(*sections) > size)
		return;
	for (unsigned i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
		const char *names;

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		names = (const char *)file + sections[sections[i].sh_link].sh_offset;
		for (size_t j = 0; j < sections[i].sh_size / sizeof(*symbols); j++) {
			const char *name = names + symbols[j].st_name;

			for (size_t k = 0; k < ARRAY_SIZE(wanted); k++) {
				if (symbols[j].st_value && !strcmp(name, wanted[k].name))
					*(uint64_t *)wanted[k].function =
						base + symbols[j].st_value;
			}
		}
	}
}

/* Why this cannot be done here, or NULL. */
static const char *find_nccl(void)
{
	void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL), *file;
	int (*get_version)(int *version);
	struct link_map *map;
	struct stat status;
	int descriptor;

	if (!library)
		return "there is no libnccl.so.2";
	*(void **)&get_version = dlsym(library, "ncclGetVersion");
	if (!get_version || get_version(&version) || dlinfo(library, RTLD_DI_LINKMAP, &map))
		return "libnccl.so.2 does not tell its version";
	descriptor = open(map->l_name, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0 || fstat(descriptor, &status))
		return "libnccl.so.2 cannot be read";
	file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
	close(descriptor);
	if (file == MAP_FAILED)
		return "libnccl.so.2 cannot be read";
	take_symbols(file, (size_t)status.st_size, map->l_addr);
	munmap(file, (size_t)status.st_size);
	return nccl.init && nccl.finalize && nccl.start_control && nccl.state_control &&
			       nccl.stop_control
		       ? NULL
		       : "libnccl.so.2 has no symbols";
}

static bool has_calls(void)
{
	return version >= 22800 && nccl.start_group && nccl.start_collective &&
	       nccl.stop_collective && nccl.stop_group;
}

/* ---- one communicator ---- */

/* What init stored: the only member that is not zero any more and can be a context. */
static void *find_context(const uint64_t *communicator)
{
	for (size_t i = 0; i < COMMUNICATOR_SIZE / 8; i++) {
		if (communicator[i] >> 60 == NCCL_ID_MAGIC)
			return (void *)(uintptr_t)communicator[i];
	}
	return NULL;
}

static void call_collective(void *communicator)
{
	static float buffer[4];
	struct nccl_info info = {.function = 4, /* AllReduce */
				 .name = "AllReduce",
				 .send = buffer,
				 .receive = buffer,
				 .count = 4,
				 .data_type = 7, /* float32 */
				 .communicator = communicator};

	require(!nccl.start_group(&info, false));
	require(!nccl.start_collective(&info, true));
	require(!nccl.stop_collective());
	require(!nccl.stop_collective()); /* NCCL never forgets this handle */
	require(!nccl.stop_group());
}

static void one_communicator(void)
{
	void *communicator = mmap(NULL, COMMUNICATOR_SIZE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *context, *handle = NULL;

	require(communicator != MAP_FAILED);
	require(!nccl.init(communicator));
	context = find_context(communicator);
	require(context);
	require(!nccl.start_control(context, &handle));
	require(handle);
	require(!nccl.state_control(handle, 0, PROXY_CONTROL_IDLE));
	require(!nccl.stop_control(handle));
	if (has_calls())
		call_collective(communicator);
	require(!nccl.finalize(communicator));
	/* The library is unloaded by NCCL, and loaded anew. */
	memset(communicator, 0, COMMUNICATOR_SIZE);
	require(!nccl.init(communicator));
	require(find_context(communicator) && find_context(communicator) != context);
	require(!nccl.finalize(communicator));
}

static const struct nccl_event *find_event(const struct recording *recording, unsigned kind)
{
	for (size_t i = 0; i < recording->events; i++) {
		if (recording->event[i]->kind == kind)
			return recording->event[i];
	}
	return NULL;
}

static void check_calls(const struct recording *recording)
{
	const struct nccl_event *group = find_event(recording, NCCL_KIND_GROUP_API);
	const struct nccl_event *call = find_event(recording, NCCL_KIND_COLLECTIVE_API);

	assert_true(group && call);
	assert_int_equal(call->parent, group->id);
	assert_int_equal(call->api.count, 4);
	assert_string_equal(drive_name(recording, call->a), "AllReduce");
	assert_string_equal(drive_name(recording, call->b), "ncclFloat32");
	assert_true(call->flags & NCCL_EVENT_CAPTURED && call->flags & NCCL_EVENT_STOPPED);
	assert_false(group->flags & NCCL_EVENT_CAPTURED);
	assert_int_equal(recording->header->losses[NCCL_LOSS_DOUBLE_STOP], 1);
}

static void run(void **state)
{
	static const unsigned versions[] = {22300, 22400, 22600, 22700, 22800, 22900, 23100};
	const struct recording *recording;
	const struct nccl_event *control;
	unsigned api = 0;

	(void)state;
	while (api < 7 && (unsigned)version >= versions[api])
		api++;
	drive_directory();
	drive_setenv("NCCL_PROFILER_PLUGIN", NCCL_PLUGIN);
	drive_setenv("KYMO_NCCL_EVENTS", "all");
	assert_child(one_communicator);
	recording = drive_read();
	assert_int_equal(recording->files, 1);
	assert_int_equal(recording->header->nccl_version, version);
	assert_int_equal(recording->header->api, api);
	assert_int_equal(recording->communicators, 2);
	assert_true(recording->communicator[0]->flags & NCCL_COMMUNICATOR_FINALIZED);
	control = find_event(recording, NCCL_KIND_PROXY_CONTROL);
	assert_non_null(control);
	assert_int_equal(control->a, PROXY_CONTROL_IDLE);
	if (has_calls())
		check_calls(recording);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(run)};
	const char *obstacle = find_nccl();

	if (obstacle) {
		printf("skipped: %s\n", obstacle);
		return SKIPPED;
	}
	printf("NCCL %d%s\n", version, has_calls() ? "" : ", without its calls");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
