/* SPDX-License-Identifier: MIT
 * What a recording keeps: memory for inputs and results, the storages that it reads with their counts of writes, and what the
 * ledger has counted. Memory that is given between begin and end is the recording's own (ql_remote.born).
 */
#include "tensor/recording.h"

#include <string.h>

#include "tensor/ledger.h"
#include "tensor/op.h"
#include "tensor/remote.h"

/* A storage from before the recording. */
struct used {
	struct ql_storage *storage;
	uint64_t version;
	bool known;   /* to the host, which has gone by what it holds */
	bool written; /* by kernels */
};

struct noted {
	uint32_t row; /* of the ledger */
	uint64_t count;
};

struct ql_recording {
	const struct ql_device *device;
	void *recorded; /* of the device; NULL: not ended, or dropped */
	uint64_t number;
	size_t bytes;
	const char *why; /* it is useless; NULL: it is not */
	bool running;
	bool training;
	struct ql_tensor **input, **result;
	int inputs, results;
	struct used *used;
	int n_used, room_used;
	struct noted *noted;
	uint32_t n_noted;
	uint64_t *counts; /* of the ledger's rows when it began */
	uint32_t n_counts;
	uint64_t seed, position; /* of the random numbers */
	struct ql_recording *next;
};

/* ---- what is used ---- */

enum ql_status ql_recording_refuse(struct ql_ctx *ctx, const char *why)
{
	if (!ctx->recording->why)
		ctx->recording->why = why;
	return ql_fail(ctx, QL_ERR_UNSUPPORTED, "not recorded: %s", why);
}

/* The entry of s, a new one if there is none; NULL without memory. */
static struct used *entry_of(struct ql_ctx *ctx, struct ql_recording *r, struct ql_storage *s)
{
	struct used *more = r->used;

	for (int i = 0; i < r->n_used; i++)
		if (r->used[i].storage == s)
			return &r->used[i];
	if (r->n_used == r->room_used) {
		r->room_used = r->room_used ? 2 * r->room_used : 32;
		more = ql_realloc_array(ctx, r->used, r->room_used, sizeof(*more));
	}
	if (!more) {
		r->room_used = r->n_used;
		r->why = "there is no memory";
		return NULL;
	}
	r->used = more;
	r->used[r->n_used] = (struct used){.storage = ql_storage_keep(s), .version = s->version};
	return &r->used[r->n_used++];
}

static void keep_storage(struct ql_ctx *ctx, struct ql_recording *r, struct ql_storage *s, bool known, bool written)
{
	struct used *u = entry_of(ctx, r, s);

	if (!u)
		return;
	u->known |= known;
	u->written |= written;
	if (u->known && u->written && !r->why)
		r->why = "it writes into memory that the host has read";
}

static bool is_input(const struct ql_recording *r, const struct ql_storage *s)
{
	for (int i = 0; i < r->inputs; i++)
		if (r->input[i]->storage == s)
			return true;
	return false;
}

/* Numbers of the host travel with a call, and literals are gone after it: the caller names those that may change
 * (ql_recording_constant). */
static void note_storage(struct ql_ctx *ctx, struct ql_storage *s, bool written)
{
	struct ql_recording *r = ctx->recording;

	bool own = s->remote && s->remote->born == r->number;

	if (written && ((!own && !(r->training && s->remote)) || is_input(r, s)))
		ql_recording_refuse(ctx, "it writes into memory that it has not made");
	if (s->remote && !own)
		keep_storage(ctx, r, s, !r->training, written && r->training);
}

#define PARTS 4

/* Where the params have a tensor, or NULL. */
static struct ql_tensor **part_of(struct ql_qparams *q, int i)
{
	struct ql_tensor **const part[PARTS] = {&q->scale, &q->zero_point, &q->shift, &q->counts};

	return part[i];
}

void ql_recording_note(struct ql_ctx *ctx, const struct ql_tensor *t, bool written)
{
	note_storage(ctx, t->storage, written);
	for (int i = 0; t->q && i < PARTS; i++)
		if (*part_of(t->q, i))
			ql_recording_note(ctx, *part_of(t->q, i), false);
}

void ql_recording_call(struct ql_ctx *ctx, const struct ql_call *call)
{
	uint32_t written = call->op->writes ? call->op->writes(call) : 0;

	for (int i = 0; i < call->n_in; i++)
		ql_recording_note(ctx, call->in[i], i < 31 && written & QL_SAVE(i));
	for (int i = 0; i < call->n_out && i < QL_MAX_OUT; i++)
		if (call->out[i])
			ql_recording_note(ctx, call->out[i], true);
}

void ql_recording_constant(struct ql_ctx *ctx, struct ql_recording *r, const struct ql_tensor *t)
{
	keep_storage(ctx, r, t->storage, true, false);
	for (int i = 0; t->q && i < PARTS; i++)
		if (*part_of(t->q, i))
			ql_recording_constant(ctx, r, *part_of(t->q, i));
}

void ql_recording_known(struct ql_ctx *ctx, struct ql_storage *s)
{
	if (s->remote->born != ctx->recording->number)
		keep_storage(ctx, ctx->recording, s, true, false);
}

/* ---- recording ---- */

const char *ql_recording_refusal(const struct ql_ctx *ctx, int n, struct ql_tensor *const *in)
{
	if (ctx->recording || ctx->recorded)
		return "the calls are recorded";
	if (ctx->fallback == QL_FALLBACK_WARN || ctx->host_fallback == QL_FALLBACK_WARN)
		return "each fallback is to be a warning";
	if (n == 0)
		return "there are no inputs";
	for (int i = 0; i < n; i++) {
		if (!in[i]->storage->device->record_begin)
			return "the device has no recordings";
		if (in[i]->storage->device != in[0]->storage->device)
			return "the inputs are on different devices";
		if (in[i]->q || ql_dtypes[in[i]->dtype].bits < 8)
			return "an input has codes or a packed dtype";
		if (!ql_tensor_is_contiguous(in[i]))
			return "an input is not contiguous";
	}
	return NULL;
}

static enum ql_status count_rows(struct ql_ctx *ctx, struct ql_recording *r)
{
	r->n_counts = ql_ledger_rows(ctx);
	r->counts = ql_alloc_array(ctx, r->n_counts, sizeof(*r->counts));
	if (!r->counts)
		return QL_ERR_MEMORY;
	for (uint32_t i = 0; i < r->n_counts; i++)
		r->counts[i] = ql_ledger_row(ctx, i + 1)->count;
	return QL_OK;
}

enum ql_status ql_recording_begin(
	struct ql_ctx *ctx, int n, struct ql_tensor *const *in, bool training, struct ql_recording **out)
{
	const char *why = ql_recording_refusal(ctx, n, in);
	struct ql_recording *r;
	enum ql_status status = QL_OK;

	*out = NULL;
	if (why)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "not recorded: %s", why);
	r = ql_alloc_zeroed(ctx, sizeof(*r));
	if (!r)
		return QL_ERR_MEMORY;
	*out = r;
	r->device = in[0]->storage->device;
	r->training = training;
	r->seed = ctx->seed;
	r->position = ctx->rng_position;
	r->input = ql_alloc_array_zeroed(ctx, n, sizeof(struct ql_tensor *));
	if (!r->input)
		return QL_ERR_MEMORY;
	r->number = ++ctx->recordings_made;
	for (; r->inputs < n && !status; r->inputs += !status)
		status = ql_tensor_clone(ctx, in[r->inputs], &r->input[r->inputs]);
	for (int i = 0; i < r->inputs; i++)
		r->input[i]->storage->remote->born = r->number;
	if (!status)
		status = count_rows(ctx, r);
	if (!status)
		status = r->device->record_begin(r->device);
	if (status)
		return status;
	ctx->recording = r;
	return QL_OK;
}

struct ql_tensor *ql_recording_input(const struct ql_recording *r, int i)
{
	return r->input[i];
}

/* The ledger shows why, too: a row "graph", path "unrecorded". */
static enum ql_status fail_useless(struct ql_ctx *ctx, const struct ql_recording *r)
{
	ql_ledger_count(ctx, "graph", "unrecorded", "none", r->why, 0);
	return ql_fail(ctx, QL_ERR_UNSUPPORTED, "not recorded: %s", r->why);
}

/* Keeps the results, which must be the work of the recording. */
static enum ql_status keep_results(struct ql_ctx *ctx, struct ql_recording *r, int n, struct ql_tensor *const *results)
{
	enum ql_status status = QL_OK;

	r->result = ql_alloc_array_zeroed(ctx, n, sizeof(struct ql_tensor *));
	if (!r->result)
		return QL_ERR_MEMORY;
	r->results = n;
	for (int i = 0; i < n && !status; i++) {
		const struct ql_storage *s = results[i]->storage;

		if (!s->remote || s->remote->born != r->number || is_input(r, s)) {
			r->why = "a result is an input, a constant, or on another device";
			return fail_useless(ctx, r);
		}
		status = ql_tensor_alias(ctx, results[i], &r->result[i]);
		if (!status)
			r->result[i]->origin = results[i]->origin;
	}
	return status;
}

/* What the ledger has counted since the beginning, which is taken back: nothing has run. *host: a row that was not of the
 * device. */
static enum ql_status take_rows(struct ql_ctx *ctx, struct ql_recording *r, bool *host)
{
	uint32_t n = ql_ledger_rows(ctx);

	*host = false;
	r->noted = ql_alloc_array(ctx, n, sizeof(*r->noted));
	for (uint32_t i = 0; i < n; i++) {
		const struct ql_ledger_row *row = ql_ledger_row(ctx, i + 1);
		uint64_t before = i < r->n_counts ? r->counts[i] : 0;

		if (row->count <= before)
			continue;
		if (r->noted)
			r->noted[r->n_noted++] = (struct noted){i + 1, row->count - before};
		ql_ledger_add(ctx, i + 1, -(int64_t)(row->count - before));
		*host |= !strcmp(row->path, "host") || !strcmp(row->path, "fallback");
	}
	ql_free(ctx, r->counts);
	r->counts = NULL;
	return r->noted ? QL_OK : QL_ERR_MEMORY;
}

/* Leaves the state of the context as it was before the recording. */
static enum ql_status leave(struct ql_ctx *ctx, struct ql_recording *r)
{
	bool host, drawn = ctx->seed != r->seed || ctx->rng_position != r->position, unread = ctx->unread[0];
	enum ql_status status, ended;

	ctx->recording = NULL;
	ended = r->device->record_end(r->device, &r->recorded, &r->bytes);
	status = take_rows(ctx, r, &host);
	ctx->seed = r->seed;
	ctx->rng_position = r->position;
	ctx->unread[0] = '\0';
	if (!r->why && host)
		r->why = "an op runs on the host or with decoded operands";
	if (!r->why && drawn)
		r->why = "it draws random numbers";
	if (!r->why && unread)
		r->why = "it waits for a value";
	if (r->why)
		return fail_useless(ctx, r);
	return ended ? ended : status;
}

enum ql_status ql_recording_end(struct ql_ctx *ctx, struct ql_recording *r, int n, struct ql_tensor *const *results)
{
	enum ql_status status = leave(ctx, r);

	if (!status)
		status = keep_results(ctx, r, n, results);
	if (status)
		return status;
	r->next = ctx->recordings;
	ctx->recordings = r;
	return QL_OK;
}

/* ---- running ---- */

/* Storages of the recording and where their bytes go, for one run. */
struct copied {
	struct ql_storage *from, *to;
};

struct copies {
	struct ql_recording *r;
	struct copied *at;
	int n, room;
};

/* Gives the storage for the bytes of `s`, the same one for all views of it. */
static enum ql_status storage_for(struct ql_ctx *ctx, struct copies *c, struct ql_storage *s, struct ql_storage **out)
{
	struct copied *more = c->at;

	for (int i = 0; i < c->n; i++)
		if (c->at[i].from == s) {
			*out = ql_storage_keep(c->at[i].to);
			return QL_OK;
		}
	*out = ql_storage_new(ctx, s->device, s->bytes);
	if (*out && c->n == c->room) {
		c->room = c->room ? 2 * c->room : 8;
		more = ql_realloc_array(ctx, c->at, c->room, sizeof(*more));
	}
	if (!*out || !more) {
		ql_storage_release(ctx, *out);
		return QL_ERR_MEMORY;
	}
	c->at = more;
	c->at[c->n++] = (struct copied){s, ql_storage_keep(*out)};
	return QL_OK;
}

static enum ql_status header_for(
	struct ql_ctx *ctx, struct copies *c, const struct ql_tensor *t, struct ql_tensor **out);

/* Params whose numbers a kernel has found are the run's own, too. */
static enum ql_status params_for(
	struct ql_ctx *ctx, struct copies *c, const struct ql_qparams *q, struct ql_qparams **out)
{
	struct ql_qparams *copy = ql_qparams_copy(ctx, q);
	enum ql_status status = QL_OK;

	*out = copy;
	if (!copy)
		return QL_ERR_MEMORY;
	for (int i = 0; i < PARTS && !status; i++) {
		struct ql_tensor **part = part_of(copy, i), *own = NULL;

		if (*part)
			status = header_for(ctx, c, *part, &own);
		if (!own)
			continue;
		ql_tensor_release(ctx, *part);
		*part = own;
	}
	return status;
}

/* Gives a header like t whose elements are the run's own. */
static enum ql_status header_for(
	struct ql_ctx *ctx, struct copies *c, const struct ql_tensor *t, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_alias(ctx, t, out);
	struct ql_storage *s;
	struct ql_qparams *q;

	if (!status && t->storage->remote && t->storage->remote->born == c->r->number) {
		status = storage_for(ctx, c, t->storage, &s);
		if (!status) {
			ql_storage_release(ctx, (*out)->storage);
			(*out)->storage = s;
		}
	}
	if (!status && t->q) {
		status = params_for(ctx, c, t->q, &q);
		if (q) {
			ql_qparams_release(ctx, (*out)->q);
			(*out)->q = q;
		}
	}
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
		return status;
	}
	(*out)->origin = t->origin;
	return QL_OK;
}

static enum ql_status check_input(struct ql_ctx *ctx, const struct ql_tensor *given, const struct ql_tensor *wanted)
{
	if (given->storage->device == wanted->storage->device && given->dtype == wanted->dtype && !given->q &&
		ql_tensor_same_shape(given, wanted) && ql_tensor_is_contiguous(given))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT, "replay: wanted contiguous inputs of the recorded shapes and dtypes");
}

static enum ql_status queue(
	struct ql_ctx *ctx, struct ql_recording *r, struct ql_tensor *const *in, const struct copies *c)
{
	const struct ql_device *d = r->device;
	enum ql_status status = QL_OK;

	for (int i = 0; i < r->inputs && !status; i++)
		status = ql_remote_copy(ctx, r->input[i], in[i]);
	if (!status)
		status = d->record_run(d, r->recorded);
	for (int i = 0; i < c->n && !status; i++)
		status = d->copy(d, c->at[i].to->remote->at, c->at[i].from->remote->at, c->at[i].from->bytes);
	return status;
}

static void count_replay(struct ql_ctx *ctx, const struct ql_recording *r)
{
	for (uint32_t i = 0; i < r->n_noted; i++)
		ql_ledger_add(ctx, r->noted[i].row, (int64_t)r->noted[i].count);
	ql_ledger_count(ctx, "graph", "replay", "recording", NULL, 0);
}

/* The results stay where they are; what was made of their bytes, and of the others that are written, is out of date. */
static enum ql_status run_training(
	struct ql_ctx *ctx, struct ql_recording *r, struct ql_tensor *const *in, struct ql_tensor **out)
{
	struct copies none = {.r = r};
	enum ql_status status = QL_OK;

	for (int i = 0; i < r->inputs && !status; i++)
		status = check_input(ctx, in[i], r->input[i]);
	if (!status)
		status = queue(ctx, r, in, &none);
	if (status) {
		memset(out, 0, ql_size_array(r->results, sizeof(*out)));
		return status;
	}
	for (int i = 0; i < r->results; i++) {
		out[i] = ql_tensor_keep(r->result[i]);
		out[i]->storage->version++;
	}
	for (int i = 0; i < r->n_used; i++)
		r->used[i].storage->version += r->used[i].written;
	count_replay(ctx, r);
	return QL_OK;
}

enum ql_status ql_recording_run(
	struct ql_ctx *ctx, struct ql_recording *r, struct ql_tensor *const *in, struct ql_tensor **out)
{
	struct copies c = {.r = r};
	enum ql_status status = QL_OK;

	if (r->training)
		return run_training(ctx, r, in, out);
	memset(out, 0, ql_size_array(r->results, sizeof(*out)));
	for (int i = 0; i < r->inputs && !status; i++)
		status = check_input(ctx, in[i], r->input[i]);
	r->running = true; /* memory for the results does not drop it */
	for (int i = 0; i < r->results && !status; i++)
		status = header_for(ctx, &c, r->result[i], &out[i]);
	if (!status)
		status = queue(ctx, r, in, &c);
	r->running = false;
	for (int i = 0; i < c.n; i++)
		ql_storage_release(ctx, c.at[i].to);
	ql_free(ctx, c.at);
	for (int i = 0; i < r->results && status; i++) {
		ql_tensor_release(ctx, out[i]);
		out[i] = NULL;
	}
	if (!status)
		count_replay(ctx, r);
	return status;
}

int ql_recording_results(const struct ql_recording *r)
{
	return r->results;
}

bool ql_recording_holds(const struct ql_recording *r)
{
	bool holds = r->recorded;

	for (int i = 0; i < r->n_used && holds; i++)
		holds = !r->used[i].known || r->used[i].storage->version == r->used[i].version;
	return holds;
}

/* ---- memory ---- */

static void unlink_recording(struct ql_ctx *ctx, struct ql_recording *r)
{
	struct ql_recording **link = &ctx->recordings;

	while (*link && *link != r)
		link = &(*link)->next;
	if (*link)
		*link = r->next;
}

/* Gives back all that it keeps. The device's part goes first: memory that the caller frees later is then ordinary. */
static void drop(struct ql_ctx *ctx, struct ql_recording *r)
{
	unlink_recording(ctx, r);
	if (r->recorded)
		r->device->record_free(r->device, r->recorded);
	r->recorded = NULL;
	for (int i = 0; i < r->inputs; i++)
		ql_tensor_release(ctx, r->input[i]);
	for (int i = 0; i < r->results; i++)
		ql_tensor_release(ctx, r->result[i]);
	for (int i = 0; i < r->n_used; i++)
		ql_storage_release(ctx, r->used[i].storage);
	r->inputs = r->results = r->n_used = 0;
}

void ql_recording_free(struct ql_ctx *ctx, struct ql_recording *r)
{
	if (!r)
		return;
	if (ctx->recording == r)
		leave(ctx, r);
	drop(ctx, r);
	ql_free(ctx, r->input);
	ql_free(ctx, r->result);
	ql_free(ctx, r->used);
	ql_free(ctx, r->noted);
	ql_free(ctx, r->counts);
	ql_free(ctx, r);
}

bool ql_recordings_drop(struct ql_ctx *ctx, const struct ql_device *device)
{
	struct ql_recording *next;
	bool any = false;

	for (struct ql_recording *r = ctx->recordings; r; r = next) {
		next = r->next;
		if (r->device != device || r->running)
			continue;
		drop(ctx, r);
		any = true;
	}
	return any;
}

int ql_recordings_count(const struct ql_ctx *ctx, size_t *bytes)
{
	int n = 0;

	*bytes = 0;
	for (const struct ql_recording *r = ctx->recordings; r; r = r->next) {
		*bytes += r->bytes;
		n++;
	}
	return n;
}
