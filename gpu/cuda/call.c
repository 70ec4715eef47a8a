/* SPDX-License-Identifier: MIT
 * Ops by name: which kernels there are, which one takes a call, running it.
 */
#include "gpu/cuda/plugin.h"

#include <stdio.h>
#include <string.h>

#define X(name) extern const struct ql_gpu_kernel ql_gpu_kernel_##name;
#include "gpu/kernels.def"
#undef X

static const struct ql_gpu_kernel *const kernels[] = {
#define X(name) &ql_gpu_kernel_##name,
#include "gpu/kernels.def"
#undef X
};
#define KERNELS ((int32_t)(sizeof(kernels) / sizeof(kernels[0])))

#define WORDS 256 /* ops of one kernel */

/* Length of the word that `text` begins with, and the next word. */
static size_t word(const char *text, const char **next)
{
	size_t n = strcspn(text, " ");

	*next = text + n + strspn(text + n, " ");
	return n;
}

/* Number of `name` among the words of `list`; -1: it is not there. */
static int32_t find_word(const char *list, const char *name, size_t length)
{
	const char *next;
	int32_t i = 0;

	for (; *list; list = next, i++) {
		size_t n = word(list, &next);

		if (n == length && !strncmp(list, name, n))
			return i;
	}
	return -1;
}

/* The number of an op is its place in the table: kernel times WORDS plus word. */
int32_t ql_call_op_find(const char *name)
{
	for (int32_t i = 0; i < KERNELS; i++) {
		int32_t at = find_word(kernels[i]->op, name, strlen(name));

		if (at >= 0)
			return i * WORDS + at;
	}
	return -1;
}

static const char *name_of(int32_t op, size_t *length)
{
	const char *text = kernels[op / WORDS]->op, *next;

	for (int32_t i = 0; i < op % WORDS; i++, text = next)
		word(text, &next);
	*length = word(text, &next);
	return text;
}

/* Whose call is planned or run; devices are called by one thread at a time. */
static _Thread_local struct ql_gpu_device *current;

/* wgmma is for one generation alone; all else runs on later ones, too. */
static bool may_run(const struct ql_gpu_device *d, const struct ql_gpu_kernel *k)
{
	bool fits = strcmp(k->family, "wgmma") ? k->cc <= d->cc : k->cc == d->cc;

	return fits && (!d->families[0] || find_word(d->families, k->family, strlen(k->family)) >= 0);
}

int32_t ql_call_plan(struct ql_gpu_device *d, int32_t op, const struct ql_gpu_call *call, struct ql_gpu_plan *plan)
{
	size_t length;
	const char *name = name_of(op, &length);
	int32_t status;

	current = d;
	*plan = (struct ql_gpu_plan){.size = sizeof(*plan)};
	status = ql_device_enter(d); /* a library may be asked for an algorithm */
	if (status) {
		snprintf(plan->why, sizeof(plan->why), "%.150s", d->error);
		return status;
	}
	for (int32_t i = op / WORDS; i < KERNELS; i++) {
		const struct ql_gpu_kernel *k = kernels[i];

		if (find_word(k->op, name, length) < 0 || !may_run(d, k))
			continue;
		plan->exact = k->exact; /* plan may lower it */
		if (!k->plan(call, plan))
			continue;
		plan->kernel = k;
		plan->name = k->name;
		plan->why[0] = '\0';
		return QL_GPU_OK;
	}
	if (!plan->why[0])
		snprintf(plan->why, sizeof(plan->why), "no kernel of the families '%s'", d->families);
	return QL_GPU_FAILED;
}

bool ql_part_plan(const struct ql_gpu_call *call, struct ql_gpu_plan *plan)
{
	int32_t op = ql_call_op_find(call->op);

	*plan = (struct ql_gpu_plan){.size = sizeof(*plan)};
	if (op < 0)
		snprintf(plan->why, sizeof(plan->why), "there is no kernel of %s", call->op);
	return op >= 0 && ql_call_plan(current, op, call, plan) == QL_GPU_OK;
}

cudaError_t ql_part_run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan plan;
	const struct ql_gpu_kernel *k;

	if (!ql_part_plan(call, &plan))
		return cudaErrorInvalidValue;
	k = plan.kernel;
	return k->run(place, call);
}

int32_t ql_call_run(struct ql_gpu_stream *s, const struct ql_gpu_call *call, const struct ql_gpu_plan *plan)
{
	const struct ql_gpu_kernel *k = plan->kernel;
	struct ql_gpu_place place = {s->stream, s->record, s->device->processors};
	int32_t status = ql_device_enter(s->device), outside;

	if (status)
		return status;
	outside = ql_extent_outside(call);
	if (outside)
		return ql_device_fail(s->device, "%s: operand %d is not within its memory", call->op, (int)outside);
	snprintf(s->name, sizeof(s->name), "%s", call->op);
	s->op = s->name;
	current = s->device;
	status = ql_device_status(s->device, k->run(&place, call), k->name, call->op);
	return status || !s->device->sync || s->recording ? status : ql_stream_sync(s);
}

int32_t ql_call_kernels(int32_t i, struct ql_gpu_kernel_info *out)
{
	if (i < 0 || i >= KERNELS)
		return QL_GPU_FAILED;
	*out = (struct ql_gpu_kernel_info){
		kernels[i]->name, kernels[i]->op, kernels[i]->family, kernels[i]->exact, kernels[i]->cc};
	return QL_GPU_OK;
}

int32_t ql_call_force(struct ql_gpu_device *d, const char *families)
{
	static const char known[] = "simt dp4a mma wgmma cublas cudnn";
	const char *next;

	for (const char *at = families ? families : ""; *at; at = next) {
		size_t n = word(at, &next);

		if (find_word(known, at, n) < 0)
			return ql_device_fail(d, "wanted families of '%s', got '%.40s'", known, families);
	}
	if (families && strlen(families) >= sizeof(d->families))
		return ql_device_fail(d, "wanted families of '%s', got more", known);
	snprintf(d->families, sizeof(d->families), "%s", families ? families : "");
	return QL_GPU_OK;
}
