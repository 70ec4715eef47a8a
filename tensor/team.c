/* SPDX-License-Identifier: MIT
 * The threads of parallel loops: how many the system allows, how they wait, what a region costs, and pinning to
 * processors.
 *
 * A region is announced by the counter `epoch` and can be entered while `gate` is open. The caller works as well; when
 * it finds nothing left it closes the gate and waits only for threads inside, so a thread that wakes late, or that the
 * system does not run, costs one system call and no time.
 *
 * After a region a thread watches `epoch` for SPIN_NS before it sleeps: the layers of a network usually follow within
 * that time, and waking a thread takes 20 to 200 microseconds. Where a loop finds the threads asleep within SPIN_MOST_NS of
 * the last region, as behind the steps of an LSTM, they watch that long from then on, until they once do so in vain. With more
 * threads than processors none watches. A
 * thread that was woken wakes two more, so the caller pays for two wake-ups at most (7 microseconds each in a virtual
 * machine).
 *
 * libgomp waits for every thread at the end of a region: with a foreign process on one of two cores, 40 and 130
 * microseconds of work, a millisecond after the previous region, took 150 and 250 (medians); they take 38 and 80 here.
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

#include "tensor/base.h"

#define MOST 1024               /* threads including the owner */
#define STACK ((size_t)1 << 20) /* of a thread */
#define SPIN_NS 50000
#define SPIN_MOST_NS 200000
#define OPEN ((uint32_t)1 << 16)
#define CHAIN 2               /* threads that one thread wakes */
#define ROUNDS 4              /* of each measurement */
#define PATIENCE_NS 300000    /* per round */
#define ASLEEP_NS 60000       /* threads are not woken for less work, */
#define ASLEEP_MOST_NS 100000 /* and always for so much */
#define LATE_NS 40000
#define NEAR 7              /* threads that are moved away from the caller's processor */
#define START_NS 100000     /* the first region starts the threads */
#define HELD_NS 1000000     /* after waiting this long for a thread that was not scheduled, */
#define SHY_NS 20000000     /* for this long */
#define SHY_PAYS_NS 2000000 /* share only loops with more work */

/* What threads that wait read; in a cache line of its own. */
static struct {
	_Alignas(64) _Atomic uint32_t epoch; /* regions so far; the threads sleep on it */
	_Atomic uint32_t gate;               /* OPEN, and the number of threads inside; the caller sleeps on it */
	_Atomic uint32_t seats;              /* threads that may be inside */
	_Atomic int64_t spin_ns;             /* how long threads watch: SPIN_NS or SPIN_MOST_NS */
	_Atomic int sleepers;
	_Atomic int unwoken; /* threads that are still to be woken for this region */
	_Atomic int cpu;     /* of the caller */
	_Atomic bool beside; /* a thread was woken on the caller's processor */
	_Atomic bool caller_sleeps;
	ql_team_fn *fn;
	void *arg;
} region = {.spin_ns = SPIN_NS};

static struct {
	_Atomic bool busy; /* a region is running, or the team is changing */
	pthread_t owner;   /* the thread that uses the team; others run loops serially */
	_Atomic bool owned;
	bool forked;
	int size;                                     /* threads including the owner; 0: not started */
	_Atomic int keep;                             /* threads with higher numbers end */
	_Atomic bool watch;                           /* before sleeping */
	int64_t asleep_ns;                            /* least work to wake threads for */
	int64_t missed_ns;                            /* what awake threads would have saved in recent loops */
	int64_t until_ns, shy_ns, woken_ns, ended_ns; /* times */
	int sleepers;                                 /* when some were woken last */
	bool pinned;
	cpu_set_t before; /* processors that the owner may use when it is not pinned */
	pthread_t thread[MOST];
} team;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_owner(void)
{
	return !atomic_load(&team.owned) || pthread_equal(team.owner, pthread_self());
}

/* ---- waiting ---- */

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

/* True when the word got another value within so many nanoseconds. */
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

/* Wakes up to CHAIN threads; they wake the others. */
static void wake_some(void)
{
	int left = atomic_load(&region.unwoken);

	while (left > 0)
		if (atomic_compare_exchange_weak(&region.unwoken, &left, left > CHAIN ? left - CHAIN : 0)) {
			wake(&region.epoch, left > CHAIN ? CHAIN : left);
			return;
		}
}

/* ---- a thread ---- */

static bool enter(void)
{
	uint32_t gate = atomic_load(&region.gate);

	while ((gate & OPEN) && (gate & ~OPEN) < atomic_load(&region.seats))
		if (atomic_compare_exchange_weak(&region.gate, &gate, gate + 1))
			return true;
	return false;
}

static void leave(void)
{
	if (atomic_fetch_sub(&region.gate, 1) == 1 && atomic_load(&region.caller_sleeps))
		wake(&region.gate, 1);
}

static bool beside_caller(void)
{
	return sched_getcpu() == atomic_load(&region.cpu);
}

/* Returns the number of the next region. */
static uint32_t next_region(uint32_t seen, bool watching)
{
	if (watching && !beside_caller()) {
		if (watch(&region.epoch, seen, atomic_load(&region.spin_ns)))
			return atomic_load(&region.epoch);
		atomic_store(&region.spin_ns, SPIN_NS);
	}
	atomic_fetch_add(&region.sleepers, 1);
	while (atomic_load(&region.epoch) == seen)
		sleep_on(&region.epoch, seen);
	if (beside_caller())
		atomic_store(&region.beside, true);
	atomic_fetch_sub(&region.sleepers, 1);
	wake_some();
	return atomic_load(&region.epoch);
}

/* One that came too late watches as well: where loops are shorter than the time to wake a thread, it is there for the next. */
static void *work(void *number)
{
	int me = (int)(intptr_t)number;
	uint32_t seen = atomic_load(&region.epoch);

	while (me <= atomic_load(&team.keep)) {
		seen = next_region(seen, atomic_load(&team.watch));
		if (enter()) {
			region.fn(region.arg, me);
			leave();
		}
	}
	return NULL;
}

/* ---- the caller ---- */

/* Linux may wake a thread on the caller's processor though others are idle, and do so again: the thread waits for the
 * caller there, or takes its time. So the caller's processor is taken out of the threads' sets while they are woken, or
 * while they wait to run. */
static void wake_elsewhere(void)
{
	int n = team.size - 1 < NEAR ? team.size - 1 : NEAR, cpu = sched_getcpu();
	cpu_set_t allowed[NEAR], others;
	bool changed[NEAR] = {false};

	for (int i = 0; i < n && !team.pinned && cpu >= 0 && cpu < CPU_SETSIZE; i++) {
		if (pthread_getaffinity_np(team.thread[i + 1], sizeof(others), &allowed[i]))
			continue;
		others = allowed[i];
		CPU_CLR((size_t)cpu, &others);
		changed[i] = CPU_COUNT(&others) && !pthread_setaffinity_np(team.thread[i + 1], sizeof(others), &others);
	}
	wake_some();
	for (int i = 0; i < n; i++)
		if (changed[i])
			pthread_setaffinity_np(team.thread[i + 1], sizeof(allowed[i]), &allowed[i]);
}

/* Moves threads away that were woken LATE_NS ago and have not run since. */
static void chase(int64_t now)
{
	if (!team.woken_ns || now - team.woken_ns < LATE_NS)
		return;
	team.woken_ns = 0;
	if (atomic_load(&region.sleepers) >= team.sleepers)
		wake_elsewhere();
}

static void announce(int others, ql_team_fn *fn, void *arg)
{
	region.fn = fn;
	region.arg = arg;
	atomic_store(&region.cpu, sched_getcpu());
	atomic_store(&region.seats, (uint32_t)others);
	atomic_store(&region.gate, OPEN);
	atomic_fetch_add(&region.epoch, 1);
	team.sleepers = atomic_load(&region.sleepers);
	others -= team.size - 1 - team.sleepers;
	if (others <= 0)
		return;
	team.woken_ns = now_ns();
	atomic_store(&region.unwoken, others);
	if (atomic_exchange(&region.beside, false))
		wake_elsewhere();
	else
		wake_some();
}

static void wait_for_others(void)
{
	uint32_t gate = atomic_fetch_and(&region.gate, ~OPEN) & ~OPEN;
	int64_t start;

	if (!gate)
		return;
	start = now_ns();
	while (gate) {
		if (!watch(&region.gate, gate, SPIN_NS)) {
			atomic_store(&region.caller_sleeps, true);
			sleep_on(&region.gate, gate);
			atomic_store(&region.caller_sleeps, false);
		}
		gate = atomic_load(&region.gate);
	}
	if (now_ns() - start > HELD_NS)
		team.shy_ns = now_ns() + SHY_NS;
}

static void run(int others, ql_team_fn *fn, void *arg)
{
	announce(others, fn, arg);
	fn(arg, 0);
	wait_for_others();
	team.ended_ns = now_ns();
	if (team.woken_ns)
		chase(team.ended_ns);
}

void ql_team_run(int n, ql_team_fn *fn, void *arg)
{
	if (n < 2 || team.size < 2 || !is_owner() || atomic_exchange(&team.busy, true)) {
		fn(arg, 0);
		return;
	}
	run((n < team.size ? n : team.size) - 1, fn, arg);
	atomic_store(&team.busy, false);
}

/* ---- what a region costs ---- */

static int64_t forced_ns = -1;

__attribute__((constructor)) static void read_environment(void)
{
	const char *set = getenv("QUOLL_TEAM_NS");

	if (set && *set >= '0' && *set <= '9')
		forced_ns = strtoll(set, NULL, 10);
}

/* True when the threads should be started or woken: for enough work, or when recent loops, each too small for that, would
 * together have gained more by awake threads than that costs. */
static bool pays_to_wake(int64_t work_ns)
{
	int64_t now = now_ns(), least_ns = team.size ? team.asleep_ns : START_NS;

	chase(now);
	if (now - team.ended_ns < SPIN_MOST_NS)
		atomic_store(&region.spin_ns, SPIN_MOST_NS);
	if (now > team.until_ns)
		team.missed_ns = 0;
	if (team.missed_ns + work_ns >= least_ns) {
		team.missed_ns = 0;
		return true;
	}
	team.missed_ns += work_ns / 2;
	team.until_ns = now + 2 * work_ns + SPIN_NS;
	return false;
}

bool ql_team_pays(int64_t work_ns)
{
	if (forced_ns >= 0)
		return work_ns >= forced_ns;
	if (!is_owner())
		return false;
	if (team.shy_ns && work_ns < SHY_PAYS_NS) {
		if (now_ns() < team.shy_ns)
			return false;
		team.shy_ns = 0;
	}
	return 2 * atomic_load(&region.sleepers) < team.size || pays_to_wake(work_ns);
}

/* The caller waits in the region for the first thread. */
static void meet(void *arg, int me)
{
	_Atomic bool *arrived = arg;
	int64_t stop;

	if (me) {
		atomic_store(arrived, true);
		return;
	}
	stop = now_ns() + PATIENCE_NS;
	while (!atomic_load(arrived) && now_ns() < stop)
		relax();
}

/* The shortest time from the start of a region to the arrival of the first of the threads, which sleep before. */
static int64_t time_to_wake(void)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t start = now_ns();
		_Atomic bool arrived = false;

		while (atomic_load(&region.sleepers) < team.size - 1 && now_ns() - start < PATIENCE_NS)
			relax();
		start = now_ns();
		run(team.size - 1, meet, &arrived);
		least = ql_min64(least, now_ns() - start);
	}
	return least;
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

/* The first processor of this one's core; siblings are listed as "0,4" or "0-1". */
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

/* Lists the allowed processors: one of each core, then the others. Returns their number. */
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

	if (team.pinned) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpu, &set);
	}
	return !pthread_setaffinity_np(thread, sizeof(set), &set);
}

/* Pins or unpins the threads from number `first` on, by `pinned`; number 0 is the caller. */
static bool bind_threads(int first)
{
	int list[CPU_SETSIZE], n = order_processors(list);
	bool good = n > 0;

	for (int me = first; n && me < (team.size ? team.size : 1); me++)
		good = bind_thread(me ? team.thread[me] : pthread_self(), list[me % n]) && good;
	return good;
}

bool ql_team_pin(bool on)
{
	bool good;

	if (on == team.pinned)
		return true;
	if (!is_owner() || (on && sched_getaffinity(0, sizeof(team.before), &team.before)) ||
		atomic_exchange(&team.busy, true))
		return false;
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

/* A forked child has none of the threads, and runs its loops serially: it is there to start a program. */
static void forget(void)
{
	team.forked = true;
	team.size = 0;
	atomic_store(&team.busy, false);
}

/* The number of threads whose stacks fit in a quarter of the remaining address space limit. */
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

/* Blocks signals except faults in the threads: the interpreter handles them. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

/* Ends the threads from number n on. */
static void stop_threads(int n)
{
	atomic_store(&team.keep, n - 1);
	atomic_fetch_add(&region.epoch, 1);
	wake(&region.epoch, MOST);
	for (; team.size > n; team.size--)
		pthread_join(team.thread[team.size - 1], NULL);
}

/* Starts threads until there are n, or as many as the system lets us. At its limit it uses only half of the possible
 * threads: other programs and the rest of this one need some as well. */
static void start_threads(int n)
{
	int first = team.size ? team.size : 1, room = room_for_stacks();
	pthread_attr_t attributes;
	sigset_t before;

	n = n - first < room ? n : first + room;
	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setstacksize(&attributes, STACK);
	block_signals(&before);
	atomic_store(&team.keep, n - 1);
	team.size = first;
	while (team.size < n &&
		!pthread_create(&team.thread[team.size], &attributes, work, (void *)(intptr_t)team.size))
		team.size++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (team.size < n)
		stop_threads(first + (team.size - first) / 2);
}

static void resize(int n)
{
	if (!atomic_load(&team.owned)) {
		team.owner = pthread_self();
		atomic_store(&team.owned, true);
		pthread_atfork(NULL, NULL, forget);
	}
	if (n < team.size)
		stop_threads(n);
	else
		start_threads(n);
	atomic_store(&team.watch, team.size <= ql_team_processors());
	if (team.size < 2)
		return;
	if (team.pinned)
		bind_threads(1);
	wake_elsewhere(); /* where they start */
	/* a thread that arrives too late costs little, so a team that starts on a busy machine is not given up */
	team.asleep_ns = ql_min64(ql_max64(2 * time_to_wake(), ASLEEP_NS), ASLEEP_MOST_NS);
}

int ql_team_ready(int n)
{
	n = n < MOST ? n : MOST;
	if (team.forked)
		return 1;
	if (n != team.size && is_owner() && !atomic_exchange(&team.busy, true)) {
		resize(n);
		atomic_store(&team.busy, false);
	}
	return is_owner() && team.size < n ? team.size : n;
}
