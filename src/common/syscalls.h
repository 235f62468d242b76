/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Raw system calls. They return -errno and leave the thread's errno alone, take no lock, are no
 * cancellation points and never reach a wrapper of ours or of the program: what handlers and
 * background threads need. x86-64 calling sequence: number in rax, arguments in rdi rsi rdx r10 r8
 * r9, rcx and r11 clobbered (syscall(2)).
 */
#ifndef KYMO_COMMON_SYSCALLS_H
#define KYMO_COMMON_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long sys_call4(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long sys_call3(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long sys_call2(long number, long a, long b)
{
	return sys_call3(number, a, b, 0);
}

static inline long sys_call1(long number, long a)
{
	return sys_call3(number, a, 0, 0);
}

static inline long sys_call0(long number)
{
	return sys_call3(number, 0, 0, 0);
}

/* Directory handle that means the working directory (AT_FDCWD), without <fcntl.h>. */
#define SYS_WORKING_DIRECTORY_FD (-100L)

static inline long sys_open(const char *path, int flags, int mode)
{
	return sys_call4(SYS_openat, SYS_WORKING_DIRECTORY_FD, (long)path, flags, mode);
}

static inline long sys_close(int fd)
{
	return sys_call1(SYS_close, fd);
}

static inline long sys_read(int fd, void *buffer, size_t size)
{
	return sys_call3(SYS_read, fd, (long)buffer, (long)size);
}

static inline long sys_write(int fd, const void *buffer, size_t size)
{
	return sys_call3(SYS_write, fd, (long)buffer, (long)size);
}

static inline long sys_pread(int fd, void *buffer, size_t size, uint64_t offset)
{
	return sys_call4(SYS_pread64, fd, (long)buffer, (long)size, (long)offset);
}

static inline long sys_pwrite(int fd, const void *buffer, size_t size, uint64_t offset)
{
	return sys_call4(SYS_pwrite64, fd, (long)buffer, (long)size, (long)offset);
}

/* mmap; compare the result with sys_mmap_failed(). */
static inline void *sys_mmap(void *address, size_t size, int protection, int flags, int fd,
			     uint64_t offset)
{
	return (void *)sys_call6(SYS_mmap, (long)address, (long)size, protection, flags, fd,
				 (long)offset);
}

static inline int sys_mmap_failed(const void *address)
{
	return (unsigned long)address >= (unsigned long)-4095L;
}

static inline long sys_munmap(void *address, size_t size)
{
	return sys_call2(SYS_munmap, (long)address, (long)size);
}

static inline long sys_madvise(void *address, size_t size, int advice)
{
	return sys_call3(SYS_madvise, (long)address, (long)size, advice);
}

static inline int sys_gettid(void)
{
	return (int)sys_call0(SYS_gettid);
}

static inline int sys_getpid(void)
{
	return (int)sys_call0(SYS_getpid);
}

/* May a file become so large (setrlimit(2))? Who writes past the limit gets SIGXFSZ, of which
 * programs die. */
static inline bool sys_is_file_size_allowed(uint64_t size)
{
	struct rlimit limit;

	return sys_call4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) || limit.rlim_cur >= size;
}

#endif
