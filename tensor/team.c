/* SPDX-License-Identifier: MIT
 * Threads that wait for loops. A loop is announced by the counter `epoch` and can be entered while `gate` is open; its
 * owner works meanwhile, closes the gate when nothing is left and waits only for those inside. A thread that wakes too
 * late, or that the system does not run, thus costs the owner one system call and no time.
 *
 * After a loop a thread watches `epoch` for SPIN_NS before it sleeps: the layers of a network follow each other
 * within that time, and waking a thread takes 30 to 200 microseconds. Where there are more threads than processors
 * nobody watches.
 *
 * OpenMP did this before. Its library ends the process when a thread cannot be started, makes threads anew whenever the
 * number changes, and its barrier waits for all threads.
 */
#include "tensor/team.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 1023
#define STACK ((size_t)1 << 20)
#define SPIN_NS 50000
#define OPEN ((uint32_t)1 << 16)
#define ROUNDS 5            /* of each measurement */
#define PATIENCE_NS 200000  /* per round */
#define AWAKE_NS 20000      /* least work to share with a thread that is awake */
#define ASLEEP_NS 60000
#define UNKNOWN_NS 500000 /* no thread arrived in time */
#define START_NS 100000   /* the first loop that starts threads */

static struct {
	_Atomic bool busy;      /* somebody runs a loop or changes the team */
	_Atomic uint32_t epoch; /* loops so far; the threads sleep on it */
	_Atomic uint32_t gate;  /* OPEN, and the number of threads inside; the owner sleeps on it */
	_Atomic bool owner_sleeps;
	_Atomic int sleepers, seats, wanted;
	_Atomic bool watch; /* before sleeping */
	_Atomic int64_t awake_ns, asleep_ns;
	ql_team_fn *fn;
	void *arg;
	int started;
	bool pinned;
	pthread_t thread[MOST + 1];
	cpu_set_t before; /* what the caller may use when not pinned */
} team = {.awake_ns = AWAKE_NS, .asleep_ns = UNKNOWN_NS};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
}

/* True when the word had another value within so many nanoseconds. */
static bool watch(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
	int64_t stop = now_ns() + ns;

	do {
		for (int i = 0; i < 16; i++) {
			if (atomic_load(word) != value)
				return true;
			relax();
		}
	} while (now_ns() < stop);
	return false;
}

/* ---- a thread of the team ---- */

static uint32_t next_epoch(uint32_t seen, bool watching)
{
	if (!watching || !watch(&team.epoch, seen, SPIN_NS)) {
		atomic_fetch_add(&team.sleepers, 1);
		while (atomic_load(&team.epoch) == seen)
			sleep_on(&team.epoch, seen);
		atomic_fetch_sub(&team.sleepers, 1);
	}
	return atomic_load(&team.epoch);
}

static bool enter(void)
{
	uint32_t gate = atomic_load(&team.gate);

	while ((gate & OPEN) && (int)(gate & ~OPEN) < atomic_load(&team.seats))
		if (atomic_compare_exchange_weak(&team.gate, &gate, gate + 1))
			return true;
	return false;
}

static void leave(void)
{
	if (atomic_fetch_sub(&team.gate, 1) == 1 && atomic_load(&team.owner_sleeps))
		wake(&team.gate, 1);
}

static void *work(void *number)
{
	int me = (int)(intptr_t)number;
	uint32_t seen = 0;
	bool inside = false;

	for (;;) {
		seen = next_epoch(seen, inside && atomic_load(&team.watch));
		if (me > atomic_load(&team.wanted))
			return NULL;
		inside = enter();
		if (inside) {
			team.fn(team.arg, me);
			leave();
		}
	}
}

/* ---- the owner of a loop ---- */

static void announce(int others)
{
	int sleepers, idle;

	atomic_store(&team.seats, others);
	atomic_store(&team.gate, OPEN);
	atomic_fetch_add(&team.epoch, 1);
	sleepers = atomic_load(&team.sleepers);
	idle = team.started - sleepers;
	if (sleepers && idle < others)
		wake(&team.epoch, others - idle);
}

static void wait_for_others(void)
{
	uint32_t gate = atomic_fetch_and(&team.gate, ~OPEN) & ~OPEN;

	while (gate) {
		if (!watch(&team.gate, gate, SPIN_NS)) {
			atomic_store(&team.owner_sleeps, true);
			sleep_on(&team.gate, gate);
			atomic_store(&team.owner_sleeps, false);
		}
		gate = atomic_load(&team.gate);
	}
}

void ql_team_run(int n, ql_team_fn *fn, void *arg)
{
	int others = n - 1 < team.started ? n - 1 : team.started;

	if (others < 1 || atomic_exchange(&team.busy, true)) {
		fn(arg, 0);
		return;
	}
	team.fn = fn;
	team.arg = arg;
	announce(others);
	fn(arg, 0);
	wait_for_others();
	atomic_store(&team.busy, false);
}

static int64_t forced_ns = -1;

__attribute__((constructor)) static void read_environment(void)
{
	const char *set = getenv("QUOLL_TEAM_NS");

	if (set && *set >= '0' && *set <= '9')
		forced_ns = strtoll(set, NULL, 10);
}

int64_t ql_team_pays(int n)
{
	if (forced_ns >= 0)
		return forced_ns;
	if (!team.started)
		return START_NS;
	return team.started - atomic_load(&team.sleepers) >= n - 1 ? team.awake_ns : team.asleep_ns;
}

/* ---- what a team costs ---- */

static _Atomic bool arrived;

static void arrive(void *arg, int me)
{
	int64_t *took = arg, start = *took;

	if (me) {
		atomic_store(&arrived, true);
		return;
	}
	while (!atomic_load(&arrived) && now_ns() - start < PATIENCE_NS)
		relax();
	*took = atomic_load(&arrived) ? now_ns() - start : INT64_MAX;
}

/* The shortest time from the announcement of an empty loop to the arrival of the first thread. Called as owner. */
static int64_t shortest(int others, bool asleep)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t took, patience = now_ns() + PATIENCE_NS;

		while (asleep && atomic_load(&team.sleepers) < team.started && now_ns() < patience)
			usleep(20);
		atomic_store(&arrived, false);
		team.fn = arrive;
		team.arg = &took;
		took = now_ns();
		announce(others);
		arrive(&took, 0);
		wait_for_others();
		least = took < least ? took : least;
	}
	return least;
}

/* A loop shall not lose 5 % by the announcement to a thread that comes too late, about a tenth of the time to wake it. */
static void measure(void)
{
	int64_t asleep = shortest(team.started, true), awake = shortest(team.started, false);

	awake = awake == INT64_MAX ? UNKNOWN_NS : 8 * awake;
	asleep = asleep == INT64_MAX ? UNKNOWN_NS : 2 * asleep;
	atomic_store(&team.awake_ns, awake > AWAKE_NS ? awake : AWAKE_NS);
	atomic_store(&team.asleep_ns, asleep > ASLEEP_NS ? asleep : ASLEEP_NS);
}

/* ---- processors ---- */

static int read_number(const char *format, int cpu)
{
	char path[128];
	FILE *f;
	int value = -1;

	snprintf(path, sizeof(path), format, cpu);
	f = fopen(path, "re");
	if (!f)
		return cpu;
	if (fscanf(f, "%d", &value) != 1)
		value = cpu;
	fclose(f);
	return value;
}

/* The first processor of the core of this one: siblings are "0,4" or "0-1". */
static int core_of(int cpu)
{
	return read_number("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
}

int ql_team_processors(void)
{
	cpu_set_t set;
	long n;

	if (!team.pinned && !sched_getaffinity(0, sizeof(set), &set))
		return CPU_COUNT(&set);
	if (team.pinned)
		return CPU_COUNT(&team.before);
	n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > MOST ? MOST : (int)n;
}

/* The allowed processors: one of each core, then the rest. Gives their number. */
static int order_processors(int list[CPU_SETSIZE])
{
	bool taken[CPU_SETSIZE] = {false};
	int n = 0, rest = 0, later[CPU_SETSIZE];

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &team.before)) {
			int core = core_of(cpu);

			if (core < 0 || core >= CPU_SETSIZE || !taken[core])
				list[n++] = cpu;
			else
				later[rest++] = cpu;
			if (core >= 0 && core < CPU_SETSIZE)
				taken[core] = true;
		}
	for (int i = 0; i < rest; i++)
		list[n++] = later[i];
	return n;
}

static bool bind_thread(pthread_t thread, int cpu)
{
	cpu_set_t set = team.before;

	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpu, &set);
	}
	return !pthread_setaffinity_np(thread, sizeof(set), &set);
}

/* Binds the threads first..started as `pinned` says; 0 is the caller. */
static bool bind_threads(int first)
{
	int list[CPU_SETSIZE], n = order_processors(list);
	bool good = n > 0;

	for (int i = first; good && i <= team.started; i++)
		good = bind_thread(i ? team.thread[i] : pthread_self(), team.pinned ? list[i % n] : -1);
	return good;
}

bool ql_team_pin(bool on)
{
	bool good;

	if (on == team.pinned)
		return true;
	if (on && sched_getaffinity(0, sizeof(team.before), &team.before))
		return false;
	while (atomic_exchange(&team.busy, true))
		sched_yield();
	team.pinned = on;
	good = bind_threads(0);
	if (!good && on) {
		team.pinned = false;
		bind_threads(0);
	}
	atomic_store(&team.busy, false);
	return good;
}

bool ql_team_pinned(void)
{
	return team.pinned;
}

/* ---- starting ---- */

/* A child that does not call exec has no threads. */
static void forget(void)
{
	team.started = 0;
	atomic_store(&team.busy, false);
	atomic_store(&team.gate, 0);
	atomic_store(&team.sleepers, 0);
}

/* Threads that a limit on address space leaves room for: their stacks take a quarter of what is left. */
static int room_for_stacks(void)
{
	struct rlimit limit;
	unsigned long long pages = 0;
	uint64_t used;
	FILE *f;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return MOST;
	f = fopen("/proc/self/statm", "re");
	if (f) {
		if (fscanf(f, "%llu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	used = limit.rlim_cur > used ? (limit.rlim_cur - used) / 4 / STACK : 0;
	return used < MOST ? (int)used : MOST;
}

/* Signals are the interpreter's. */
static bool start_one(const pthread_attr_t *attributes)
{
	sigset_t all, before;
	bool good;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	good = !pthread_create(&team.thread[team.started + 1], attributes, work, (void *)(intptr_t)(team.started + 1));
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return good;
}

/* Where the system refuses one more, half of them go: other programs and the rest of this one need some, too. */
static void give_back(void)
{
	team.started /= 2;
	atomic_store(&team.wanted, team.started);
	atomic_fetch_add(&team.epoch, 1);
	wake(&team.epoch, MOST);
}

static void start(int others)
{
	static bool prepared;
	int before = team.started, room = room_for_stacks();
	pthread_attr_t attributes;

	if (!prepared)
		prepared = !pthread_atfork(NULL, NULL, forget);
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	others = others > MOST ? MOST : others > room ? room : others;
	if (others > before)
		atomic_store(&team.wanted, others);
	while (team.started < others)
		if (!start_one(&attributes)) {
			give_back();
			break;
		} else {
			team.started++;
		}
	pthread_attr_destroy(&attributes);
	if (team.started <= before)
		return;
	if (team.pinned)
		bind_threads(before + 1);
	atomic_store(&team.watch, team.started < ql_team_processors());
	measure();
}

int ql_team_ready(int n)
{
	if (n - 1 > team.started && !atomic_exchange(&team.busy, true)) {
		start(n - 1);
		atomic_store(&team.busy, false);
	}
	return team.started + 1 < n ? team.started + 1 : n;
}
