/* SPDX-License-Identifier: MIT
 * Landlock (Linux 5.13; linux/landlock.h) says which files there are, seccomp (a filter in classic BPF) which system
 * calls. Both are inherited by threads and children and are never taken back, so no hole in the interpreter or in a
 * library that reads a file opens them. Where the kernel has not got both, there is no sandbox and the program says so.
 *
 * Programs are refused by execve, not by fork: the helper that removes temporary files is a fork of ours.
 */
#include "interp/host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interp/host/temporary.h"

/* Rights that the headers of Debian 12 do not name yet. */
#define QL_TRUNCATE (1ULL << 14)  /* version 3 */
#define QL_IOCTL_DEV (1ULL << 15) /* version 5 */
#define QL_RIGHTS_1 ((1ULL << 13) - 1)

#define QL_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define QL_FILE_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | QL_TRUNCATE | QL_IOCTL_DEV)
#define QL_WRITE \
	(QL_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
		LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REFER | QL_TRUNCATE)

#if defined(__x86_64__)
#define QL_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define QL_AUDIT_ARCH AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define QL_AUDIT_ARCH AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define QL_AUDIT_ARCH AUDIT_ARCH_ARM
#elif defined(__riscv) && __riscv_xlen == 64
#define QL_AUDIT_ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define QL_AUDIT_ARCH AUDIT_ARCH_PPC64LE
#else
#define QL_AUDIT_ARCH 0 /* the number of no processor: the sandbox is refused */
#endif

/* What the program reads of the system: libraries that are loaded at run time, fonts, facts about the processor. */
static const char *const system_files[] = {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/fonts", "/etc/localtime",
	"/var/cache/fontconfig", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/loadavg", "/proc/stat",
	"/proc/self/statm", "/proc/self/status", "/proc/self/cmdline", "/sys/devices/system/cpu",
	"/sys/fs/cgroup/memory.max"};

static const char *const devices[] = {"/dev/null", "/dev/tty"};

static bool fail(char *error, const char *what, const char *why)
{
	snprintf(error, QL_SANDBOX_ERROR, "--sandbox: %s: %s", what, why);
	return false;
}

struct rules {
	int fd;
	uint64_t handled;
};

/* false with errno */
static bool add(const struct rules *r, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
	struct stat st;
	bool good;
	int saved;

	if (rule.parent_fd < 0)
		return false;
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rights &= QL_FILE_RIGHTS;
	rule.allowed_access = rights & r->handled;
	good = !syscall(__NR_landlock_add_rule, r->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	saved = errno;
	close(rule.parent_fd);
	errno = saved;
	return good;
}

static bool add_folder(const struct rules *r, const char *name, char *error)
{
	struct stat st;

	if (stat(name, &st))
		return fail(error, name, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail(error, name, "wanted a folder");
	return add(r, name, QL_WRITE) || fail(error, name, strerror(errno));
}

static bool add_folders(const struct rules *r, const char *folders, char *error)
{
	char *all = strcmp(folders, "none") ? strdup(folders) : NULL, *rest = all;
	bool good = true;

	if (!all)
		return !strcmp(folders, "none") || fail(error, folders, strerror(ENOMEM));
	for (char *name; good && (name = strsep(&rest, ":"));)
		good = *name ? add_folder(r, name, error) : fail(error, folders, "a folder without a name");
	free(all);
	return good;
}

static void add_files(const struct rules *r, char *const files[], int n)
{
	struct stat st;

	for (int i = 0; i < n; i++)
		if (stat(files[i], &st) == 0 && S_ISREG(st.st_mode))
			add(r, files[i], LANDLOCK_ACCESS_FS_READ_FILE);
	for (size_t i = 0; i < sizeof(system_files) / sizeof(system_files[0]); i++)
		add(r, system_files[i], QL_READ); /* what is missing is not needed */
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		add(r, devices[i], QL_FILE_RIGHTS);
}

/* All rights that this kernel's version knows, so that what no rule gives is refused. */
static uint64_t known_rights(long version)
{
	return QL_RIGHTS_1 | (version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0) | (version >= 3 ? QL_TRUNCATE : 0) |
	       (version >= 5 ? QL_IOCTL_DEV : 0);
}

static bool confine_files(const char *folders, const char *data, char *const files[], int n, char *error)
{
	long version = syscall(__NR_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset_attr all = {.handled_access_fs = known_rights(version)};
	struct rules r = {.handled = all.handled_access_fs};
	bool good;

	if (version < 1)
		return fail(error, "this kernel has no Landlock", strerror(errno));
	r.fd = (int)syscall(__NR_landlock_create_ruleset, &all, sizeof(all), 0);
	if (r.fd < 0)
		return fail(error, "Landlock", strerror(errno));
	good = add_folders(&r, folders, error) && add_folder(&r, ql_temporary_folder(), error);
	if (good && data && *data)
		add(&r, data, QL_READ);
	if (good) {
		add_files(&r, files, n);
		good = !syscall(__NR_landlock_restrict_self, r.fd, 0) || fail(error, "Landlock", strerror(errno));
	}
	close(r.fd);
	return good;
}

/* Of 64 bits the low 32, which are all that the kernel reads of the numbers that are compared here. */
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define REFUSED (SECCOMP_RET_ERRNO | (EPERM & SECCOMP_RET_DATA))
/* Skips so many statements when what is loaded has this value, or when it has another. */
#define SKIP_IF(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, n, 0)
#define SKIP_UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)
/* A call is refused unless its first argument is this process. */
#define REFUSE_OTHERS(name, pid) \
	SKIP_UNLESS(__NR_##name, 4), LOAD(args[0]), SKIP_UNLESS(pid, 1), ANSWER(SECCOMP_RET_ALLOW), ANSWER(REFUSED)
/* The same, but the argument `at` may be 0 instead: no signal, or by another name this process. */
#define REFUSE_OTHERS_UNLESS(name, pid, at) \
	SKIP_UNLESS(__NR_##name, 6), LOAD(args[at]), SKIP_IF(0, 2), LOAD(args[0]), SKIP_UNLESS(pid, 1), \
		ANSWER(SECCOMP_RET_ALLOW), ANSWER(REFUSED)
/* Signals of files to a process of choice. */
#define REFUSE_OWNERS(name) \
	SKIP_UNLESS(__NR_##name, 5), LOAD(args[1]), SKIP_IF(F_SETOWN, 2), SKIP_IF(F_SETOWN_EX, 1), \
		ANSWER(SECCOMP_RET_ALLOW), ANSWER(REFUSED)

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Calls that are refused whatever their arguments are. */
static const uint32_t refused[] = {__NR_execve, __NR_execveat, __NR_socket, __NR_connect, __NR_bind, __NR_ptrace,
	__NR_process_vm_readv, __NR_process_vm_writev, __NR_mount, __NR_umount2, __NR_chroot, __NR_pivot_root,
	__NR_unshare, __NR_setns, __NR_bpf, __NR_perf_event_open, __NR_userfaultfd, __NR_io_uring_setup,
	__NR_open_by_handle_at, __NR_init_module, __NR_finit_module, __NR_kexec_load, __NR_keyctl, __NR_tkill,
	__NR_pidfd_send_signal, __NR_pidfd_getfd};

struct filter {
	struct sock_filter code[64 + 2 * COUNT(refused)]; /* 64: more than the statements of the functions below */
	size_t n;
};

static void append(struct filter *f, size_t n, const struct sock_filter *code)
{
	memcpy(f->code + f->n, code, n * sizeof(*code));
	f->n += n;
}

#define APPEND(f, ...) \
	append(f, COUNT(((struct sock_filter[]){__VA_ARGS__})), (const struct sock_filter[]){__VA_ARGS__})

static void begin(struct filter *f)
{
	APPEND(f, LOAD(arch), SKIP_IF(QL_AUDIT_ARCH, 1), ANSWER(SECCOMP_RET_KILL_PROCESS), LOAD(nr));
#if defined(__x86_64__)
	/* x32: the same calls by other numbers */
	APPEND(f, BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), ANSWER(REFUSED));
#endif
	for (size_t i = 0; i < COUNT(refused); i++)
		APPEND(f, SKIP_UNLESS(refused[i], 1), ANSWER(REFUSED));
}

/* Signals may only go to this process; a limit of the processor's time is one, too. */
static void confine_signals(struct filter *f)
{
	uint32_t pid = (uint32_t)getpid();

	APPEND(f, REFUSE_OTHERS(tgkill, pid), REFUSE_OTHERS(rt_sigqueueinfo, pid),
		REFUSE_OTHERS(rt_tgsigqueueinfo, pid), REFUSE_OTHERS_UNLESS(kill, pid, 1),
		REFUSE_OTHERS_UNLESS(prlimit64, pid, 0), REFUSE_OWNERS(fcntl));
#ifdef __NR_fcntl64
	APPEND(f, REFUSE_OWNERS(fcntl64));
#endif
}

/* The terminal is shared with the shell, which would read what TIOCSTI and TIOCLINUX put into its input. */
static void confine_terminal(struct filter *f)
{
	APPEND(f, SKIP_UNLESS(__NR_ioctl, 8), LOAD(args[1]), SKIP_IF(TIOCSTI, 5), SKIP_IF(TIOCLINUX, 4),
		SKIP_IF(TIOCSETD, 3), SKIP_IF(FIOSETOWN, 2), SKIP_IF(SIOCSPGRP, 1), ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(REFUSED));
}

static bool confine_calls(char *error)
{
	struct filter f = {.n = 0};
	struct sock_fprog program = {.filter = f.code};

	if (!QL_AUDIT_ARCH)
		return fail(error, "this processor", "its system calls are not known here");
	begin(&f);
	confine_signals(&f);
	confine_terminal(&f);
	APPEND(&f, ANSWER(SECCOMP_RET_ALLOW));
	program.len = (unsigned short)f.n;
	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) ||
	       fail(error, "this kernel has no seccomp filters", strerror(errno));
}

bool ql_sandbox_enter(const char *folders, const char *data, char *const files[], int n, char error[QL_SANDBOX_ERROR])
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail(error, "this kernel", strerror(errno));
	return confine_files(folders, data, files, n, error) && confine_calls(error);
}
