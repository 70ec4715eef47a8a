/* SPDX-License-Identifier: MIT
 * System calls within the sandbox, as code that got past the interpreter would make them: into a terminal, and at
 * another process. Each is made in a child that has entered the sandbox; another child is who it is aimed at.
 */
#include "interp/host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/host/temporary.h"
#include "tests/check.h"

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	(void)number;
	caught++;
}

static pid_t victim;
static int terminal = -1;

/* What a call gave: its errno, 0 for success. */
struct answer {
	const char *call;
	bool refused; /* wanted */
	long result;
	int error;
};

static struct answer answers[64];
static int n_answers;

static void note(const char *call, bool refused, long result)
{
	answers[n_answers++] = (struct answer){call, refused, result, result < 0 ? errno : 0};
}

#define TRY(refused, ...) errno = 0, note(#__VA_ARGS__, refused, syscall(__VA_ARGS__))

static void try_terminal(void)
{
	const unsigned long high = 0xffffffff00000000;
	char key = 'x';
	struct winsize size;
	int one = 1;

	TRY(true, __NR_ioctl, terminal, (unsigned long)TIOCSTI, &key);
	TRY(true, __NR_ioctl, terminal, high | TIOCSTI, &key);
	TRY(true, __NR_ioctl, terminal, (unsigned long)TIOCLINUX, &key);
	TRY(true, __NR_ioctl, terminal, high | TIOCLINUX, &key);
	TRY(true, __NR_ioctl, terminal, (unsigned long)TIOCSETD, &one);
	TRY(true, __NR_ioctl, terminal, (unsigned long)FIOSETOWN, &victim);
	TRY(false, __NR_ioctl, terminal, (unsigned long)TIOCGWINSZ, &size);
	TRY(true, __NR_fcntl, terminal, F_SETOWN, victim);
	TRY(true, __NR_fcntl, terminal, F_SETOWN_EX, &victim);
	TRY(false, __NR_fcntl, terminal, F_GETFL);
}

static void try_signals(void)
{
	struct rlimit64 limit = {1, 1};
	pid_t self = getpid();
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	TRY(true, __NR_kill, victim, SIGKILL);
	TRY(true, __NR_kill, -victim, SIGKILL);
	TRY(true, __NR_kill, 0, SIGUSR1);
	TRY(true, __NR_kill, -1, SIGUSR1);
	TRY(true, __NR_kill, 0xffffffff00000000 | (unsigned long)victim, SIGKILL);
	TRY(true, __NR_kill, victim, 0xffffffff00000000 | SIGKILL);
	TRY(false, __NR_kill, victim, 0);
	TRY(true, __NR_tkill, victim, SIGKILL);
	TRY(true, __NR_tgkill, victim, victim, SIGKILL);
	TRY(true, __NR_rt_sigqueueinfo, victim, SIGKILL, &info);
	TRY(true, __NR_rt_tgsigqueueinfo, victim, victim, SIGKILL, &info);
	TRY(true, __NR_pidfd_send_signal, 3, SIGKILL, NULL, 0);
	TRY(true, __NR_pidfd_getfd, 3, 0, 0);
	TRY(true, __NR_process_vm_writev, victim, NULL, 0, NULL, 0, 0);
	TRY(true, __NR_prlimit64, victim, RLIMIT_CPU, &limit, NULL);
	TRY(false, __NR_prlimit64, 0, RLIMIT_CPU, NULL, &limit);
	TRY(false, __NR_prlimit64, self, RLIMIT_CPU, NULL, &limit);
	TRY(false, __NR_kill, self, SIGUSR1);
	TRY(false, __NR_tgkill, self, self, SIGUSR1);
	note("raise", false, raise(SIGUSR1));
	note("pthread_kill", false, pthread_kill(pthread_self(), SIGUSR1));
	note("sigqueue", false, sigqueue(self, SIGUSR1, (union sigval){0}));
}

/* In the child: its answers go through the pipe. */
static void attack(int to)
{
	char error[QL_SANDBOX_ERROR];

	signal(SIGUSR1, on_signal);
	if (!ql_temporary_start() || !ql_sandbox_enter("none", NULL, NULL, 0, error)) {
		n_answers = 0;
	} else {
		try_terminal();
		try_signals();
		note("signals to itself", false, caught == 5 ? 0 : -1);
	}
	if (write(to, &n_answers, sizeof(n_answers)) < 0 || write(to, answers, sizeof(answers)) < 0)
		_exit(1);
	ql_temporary_end();
	_exit(0);
}

int main(void)
{
	int ends[2], status;
	pid_t child;

	terminal = posix_openpt(O_RDWR | O_NOCTTY);
	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal) || pipe(ends)) {
		SKIP("system calls in the sandbox", "no pseudo-terminal");
		return check_end();
	}
	terminal = open(ptsname(terminal), O_RDWR | O_NOCTTY);
	victim = fork();
	if (victim == 0) {
		pause();
		_exit(0);
	}
	child = fork();
	if (child == 0)
		attack(ends[1]);
	waitpid(child, &status, 0);
	if (status || read(ends[0], &n_answers, sizeof(n_answers)) < 0 || read(ends[0], answers, sizeof(answers)) < 0)
		CHECK(false, "the child ended with status %d", status);
	else if (n_answers == 0)
		SKIP("system calls in the sandbox", "this kernel has none");
	for (int i = 0; i < n_answers && !status; i++) {
		const struct answer *a = &answers[i];

		CASE("%s", a->call);
		CHECK(a->refused ? a->result < 0 && a->error == EPERM : a->result >= 0, "%ld, %s", a->result,
			strerror(a->error));
	}
	CASE("the other process lives");
	CHECK(waitpid(victim, &status, WNOHANG) == 0, "status %d", status);
	kill(victim, SIGKILL);
	waitpid(victim, &status, 0);
	return check_end();
}
