/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A stand-in for AMD's libamd_comgr: four bytes are an instruction, "op" and its first byte; at
 * 0xff it fails. Two symbols, of which one is a function, at address 0x1000.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct handle {
	uint64_t handle;
};

typedef uint64_t read_function(uint64_t from, char *to, uint64_t size, void *user);
typedef void print_function(const char *instruction, void *user);
typedef void annotate_function(uint64_t address, void *user);

int amd_comgr_status_string(int status, const char **text);
int amd_comgr_create_data(int kind, struct handle *data);
int amd_comgr_set_data(struct handle data, size_t size, const char *bytes);
int amd_comgr_release_data(struct handle data);
int amd_comgr_get_data_isa_name(struct handle data, size_t *size, char *name);
int amd_comgr_create_disassembly_info(const char *isa, read_function *read, print_function *print,
				      annotate_function *annotate, struct handle *info);
int amd_comgr_destroy_disassembly_info(struct handle info);
int amd_comgr_disassemble_instruction(struct handle info, uint64_t address, void *user,
				      uint64_t *size);
int amd_comgr_iterate_symbols(struct handle data, int (*each)(struct handle symbol, void *user),
			      void *user);
int amd_comgr_symbol_get_info(struct handle symbol, int what, void *value);
unsigned fake_comgr_open(void);

static read_function *reader;
static print_function *printer;
static unsigned opened; /* objects that nobody has given back */

unsigned fake_comgr_open(void)
{
	return opened;
}

int amd_comgr_status_string(int status, const char **text)
{
	*text = status == 1 ? "it failed" : "an argument";
	return 0;
}

int amd_comgr_create_data(int kind, struct handle *data)
{
	data->handle = 1;
	opened++;
	return kind == 8 ? 0 : 2;
}

int amd_comgr_set_data(struct handle data, size_t size, const char *bytes)
{
	return data.handle == 1 && size && bytes ? 0 : 2;
}

int amd_comgr_release_data(struct handle data)
{
	opened -= data.handle == 1;
	return 0;
}

int amd_comgr_get_data_isa_name(struct handle data, size_t *size, char *name)
{
	static const char isa[] = "amdgcn-amd-amdhsa--gfx000";

	if (name && *size >= sizeof(isa))
		memcpy(name, isa, sizeof(isa));
	*size = sizeof(isa);
	return data.handle == 1 ? 0 : 2;
}

int amd_comgr_create_disassembly_info(const char *isa, read_function *read, print_function *print,
				      annotate_function *annotate, struct handle *info)
{
	if (strcmp(isa, "amdgcn-amd-amdhsa--gfx000") != 0 || !annotate)
		return 2;
	reader = read;
	printer = print;
	info->handle = 2;
	opened++;
	return 0;
}

int amd_comgr_destroy_disassembly_info(struct handle info)
{
	opened -= info.handle == 2;
	return 0;
}

int amd_comgr_disassemble_instruction(struct handle info, uint64_t address, void *user,
				      uint64_t *size)
{
	unsigned char bytes[64];
	char text[16];

	if (info.handle != 2 || reader(address, (char *)bytes, sizeof(bytes), user) < 4 ||
	    bytes[0] == 0xff)
		return 1;
	snprintf(text, sizeof(text), "\t op%d", bytes[0]);
	printer(text, user);
	*size = 4;
	return 0;
}

int amd_comgr_iterate_symbols(struct handle data, int (*each)(struct handle symbol, void *user),
			      void *user)
{
	int status = data.handle == 1 ? 0 : 2;

	for (uint64_t i = 3; i <= 4 && !status; i++)
		status = each((struct handle){i}, user);
	return status;
}

int amd_comgr_symbol_get_info(struct handle symbol, int what, void *value)
{
	static const char name[] = "a_kernel_with_a_name_of_more_than_16";

	switch (what) {
	case 0:
		*(uint64_t *)value = sizeof(name) - 1;
		return 0;
	case 1:
		memcpy(value, name, sizeof(name));
		return 0;
	case 2:
		*(int *)value = symbol.handle == 3 ? 1 : 2;
		return 0;
	case 3:
		*(uint64_t *)value = 8;
		return 0;
	case 5:
		*(uint64_t *)value = 0x1000;
		return 0;
	default:
		return 2;
	}
}
