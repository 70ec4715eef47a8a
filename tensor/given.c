/* SPDX-License-Identifier: MIT
 * Params with numbers of the host on a device. A layer with a given scale makes the same ones at each call, so those used last
 * stay: nothing is copied, and a call with them can be recorded.
 */
#include "tensor/qparams.h"
#include "tensor/remote.h"

#define MOST 128          /* params that stay */
#define MOST_SCALES 65536 /* of one of them */

struct kept {
	const struct ql_device *device;
	struct ql_qparams *host, *there;
	uint64_t version[2]; /* of scale and zero point, which their owner may write */
};

struct ql_given {
	int n, next; /* next: the place that is taken over */
	struct kept kept[MOST];
};

static void versions_of(const struct ql_qparams *q, uint64_t version[2])
{
	version[0] = q->scale->storage->version;
	version[1] = q->zero_point ? q->zero_point->storage->version : 0;
}

static bool is_unchanged(const struct kept *k)
{
	uint64_t now[2];

	versions_of(k->there, now);
	return now[0] == k->version[0] && now[1] == k->version[1];
}

static bool same(const struct kept *k, const struct ql_qparams *q, const struct ql_device *device)
{
	return k->device == device && k->host->codes.bits == q->codes.bits &&
	       k->host->scale->dtype == q->scale->dtype && ql_qparams_equal(k->host, q) && is_unchanged(k);
}

static void drop(struct ql_ctx *ctx, struct kept *k)
{
	ql_qparams_release(ctx, k->host);
	ql_qparams_release(ctx, k->there);
}

void ql_given_free(struct ql_ctx *ctx)
{
	for (int i = 0; ctx->given && i < ctx->given->n; i++)
		drop(ctx, &ctx->given->kept[i]);
	ql_free(ctx, ctx->given);
	ctx->given = NULL;
}

/* Without memory nothing stays. */
static void keep(struct ql_ctx *ctx, struct ql_qparams *q, const struct ql_device *device, struct ql_qparams *there)
{
	struct ql_given *g = ctx->given ? ctx->given : ql_alloc_zeroed(ctx, sizeof(*g));
	struct kept *k;

	ctx->given = g;
	if (!g)
		return;
	k = &g->kept[g->n < MOST ? g->n : g->next];
	if (g->n == MOST) {
		drop(ctx, k);
		g->next = (g->next + 1) % MOST;
	} else {
		g->n++;
	}
	*k = (struct kept){.device = device, .host = ql_qparams_keep(q), .there = ql_qparams_keep(there)};
	versions_of(there, k->version);
}

enum ql_status ql_qparams_given(
	struct ql_ctx *ctx, struct ql_qparams *q, const struct ql_device *device, struct ql_qparams **out)
{
	const struct ql_given *g = ctx->given;
	enum ql_status status;

	for (int i = 0; g && i < g->n; i++)
		if (same(&g->kept[i], q, device)) {
			*out = ql_qparams_keep(g->kept[i].there);
			return QL_OK;
		}
	status = ql_qparams_to(ctx, q, device, out);
	/* copies of a recording are made when it runs */
	if (!status && *out != q && !ctx->recording && ql_tensor_nelem(q->scale) <= MOST_SCALES)
		keep(ctx, q, device, *out);
	return status;
}
