/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A process as /proc shows it: its state, its mappings, and the dynamic symbols of what is mapped,
 * read from its memory (the file may have been replaced since). proc(5), elf(5).
 */
#ifndef KYMO_INJECT_PROCESS_H
#define KYMO_INJECT_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_mapping {
	uint64_t start, end, offset, device, inode;
	bool executable;
	const char *path; /* "" for anonymous memory */
};

struct process_maps {
	struct process_mapping *list; /* by address */
	size_t count;
	char *text;
};

/* 0 or negative errno. */
int process_maps_read(pid_t pid, struct process_maps *ret);
void process_maps_free(struct process_maps *maps);
const struct process_mapping *process_maps_find_by_address(const struct process_maps *maps,
							   uint64_t address);
/* Where the object that this mapping belongs to begins: the mapping of its file's first bytes; NULL
 * when there is none. */
const struct process_mapping *
process_maps_find_start_of_file_below(const struct process_maps *maps,
				      const struct process_mapping *part);
/* The last part of a path, and whether it begins with `prefix`. */
const char *process_path_to_base_name(const char *path);
bool process_path_is_loader(const char *path);
bool process_path_is_libc(const char *path);

/* A field of /proc/PID/status or /proc/PID/task/TID/status ("Uid"); false when it is not there. */
bool process_read_status_field(const char *status, const char *field, char *ret, size_t size);
/* Reads a small file of /proc whole; length or negative errno. */
ssize_t process_read_proc_file(const char *path, char *buffer, size_t size);

struct process_symbol {
	uint64_t start, end;
	const char *name;
};

struct process_symbols {
	struct process_symbol *list; /* defined functions, by address */
	size_t count;
	/* Thread-local variables, at the end of the same array; start: in the object's block. */
	struct process_symbol *thread_local_symbols;
	size_t thread_local_symbol_count;
	char *names;
};

/* The functions that an object exports; `memory` is an open /proc/PID/mem, `base` the address of
 * its ELF header. 0 or negative errno. */
int process_symbols_read(int memory, uint64_t base, struct process_symbols *ret);
void process_symbols_free(struct process_symbols *symbols);
/* 0 when it is not there. */
uint64_t process_symbols_find_address(const struct process_symbols *symbols, const char *name);
/* How far behind `from` in the object's thread-local block `name` lies; 0: the object has not both.
 */
int64_t process_symbols_find_tls_pair_distance(const struct process_symbols *symbols,
					       const char *from, const char *name);

/* Reads exactly `size` bytes. */
bool process_read_memory(int memory, uint64_t address, void *buffer, size_t size);
/* The same for many pages, in less time where they are readable for the process itself. */
bool process_read_memory_by_vm_readv(pid_t pid, int memory, uint64_t address, void *buffer,
				     size_t size);
bool process_write_memory(int memory, uint64_t address, const void *buffer, size_t size);

#endif
