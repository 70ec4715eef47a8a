/* SPDX-License-Identifier: MIT
 * Steps of optimizers over lists of tensors, in place, and the norm of gradients: the formulas of nn/optimizer_rules.c, operation
 * by operation, and its order of sums. A launch takes all tensors of a call that have one dtype; a block takes CHUNK elements
 * of one of them.
 *
 * sgd_step, adam_step   operands: value, gradient, states of each tensor
 * gradient_clip         operands: gradients
 * gradient_squares      operands: gradients, then the sums of all chunks, of which those from `first` on are written
 * gradient_norm         the root of the sum of these
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define EACH 4
#define CHUNK (THREADS * EACH * 2)
#define ITEMS 16
#define TENSORS 64   /* of gradient_squares */
#define SQUARES 8192 /* elements under one sum */
#define LANES 16     /* of a sum: element i goes to lane i mod LANES */
#define AHEAD 16     /* elements of a lane that are read together */
#define PIECE 1024   /* elements of 16 bits whose lanes are joined */
#define ALL 0xffffffffu

/* struct ql_step_numbers of nn/optimizer_rules.h */
template <typename R> struct numbers {
	R scale, limit, lr, momentum, decay, keep1, keep2, root, eps, shrink, nesterov;
};
#define NUMBERS 11

enum rule { SGD, MOMENTUM, ADAM, CLIP };

template <typename R> struct item {
	void *value;
	const void *gradient;
	R *state[2];
	int64_t n, first; /* elements; number of the first chunk */
	int32_t vectors;  /* all are aligned to EACH elements */
	struct numbers<R> k;
};

template <typename R> struct list {
	int64_t chunks;
	int32_t items;
	struct item<R> item[ITEMS];
};

/* ---- elements ---- */

template <int E> struct real {
	typedef float type;
};
template <> struct real<QL_E_float64> {
	typedef double type;
};

template <int E> QL_DEVICE typename real<E>::type load(const void *at, int64_t i)
{
	if constexpr (E == QL_E_float64)
		return static_cast<const double *>(at)[i];
	else
		return ql_load_small(E, at, i);
}
template <int E> QL_DEVICE void store(void *at, int64_t i, typename real<E>::type x)
{
	if constexpr (E == QL_E_float64)
		static_cast<double *>(at)[i] = x;
	else
		ql_store_small(E, at, i, x);
}

/* EACH elements from i on, of a vector of R or of 16-bit floats; n: how many there are */
template <int E>
QL_DEVICE void load_each(const void *at, int64_t i, int64_t n, bool whole, typename real<E>::type x[EACH])
{
	if constexpr (E == QL_E_float32) {
		if (whole) {
			uint4 v = *reinterpret_cast<const uint4 *>(static_cast<const float *>(at) + i);

			x[0] = ql_float_of(v.x);
			x[1] = ql_float_of(v.y);
			x[2] = ql_float_of(v.z);
			x[3] = ql_float_of(v.w);
			return;
		}
	} else if constexpr (E != QL_E_float64) {
		if (whole) {
			uint2 v = *reinterpret_cast<const uint2 *>(static_cast<const uint16_t *>(at) + i);
			const uint32_t word[2] = {v.x, v.y};

			QL_UNROLL
			for (int j = 0; j < EACH; j++) {
				uint16_t h = (uint16_t)(word[j / 2] >> 16 * (j % 2));

				x[j] = E == QL_E_float16 ? ql_from_f16(h) : ql_from_bf16(h);
			}
			return;
		}
	}
	QL_UNROLL
	for (int j = 0; j < EACH; j++)
		x[j] = i + j < n ? load<E>(at, i + j) : 0;
}

template <int E>
QL_DEVICE void store_each(void *at, int64_t i, int64_t n, bool whole, const typename real<E>::type x[EACH])
{
	if constexpr (E == QL_E_float32) {
		if (whole) {
			*reinterpret_cast<uint4 *>(static_cast<float *>(at) + i) =
				uint4{ql_bits_of(x[0]), ql_bits_of(x[1]), ql_bits_of(x[2]), ql_bits_of(x[3])};
			return;
		}
	} else if constexpr (E != QL_E_float64) {
		if (whole) {
			uint32_t word[2] = {0, 0};

			QL_UNROLL
			for (int j = 0; j < EACH; j++)
				word[j / 2] |= (uint32_t)(E == QL_E_float16 ? ql_to_f16(x[j]) : ql_to_bf16(x[j]))
					       << 16 * (j % 2);
			*reinterpret_cast<uint2 *>(static_cast<uint16_t *>(at) + i) = uint2{word[0], word[1]};
			return;
		}
	}
	QL_UNROLL
	for (int j = 0; j < EACH; j++)
		if (i + j < n - QL_BUG(step_tail))
			store<E>(at, i + j, x[j]);
}

/* ---- steps ---- */

QL_DEVICE float root_of(float x)
{
	return sqrtf(x);
}
QL_DEVICE double root_of(double x)
{
	return sqrt(x);
}

template <int RULE, typename R> QL_DEVICE void step_one(const numbers<R> &k, R &p, R g, R &s, R &v)
{
	R d = g * k.scale;

	d = d > k.limit ? k.limit : d;
	d = d < -k.limit ? -k.limit : d;
	if (RULE == CLIP) {
		p = d;
	} else if (RULE == ADAM) {
		R x = p * k.shrink;

		d = d + k.decay * x;
		s = s + k.keep1 * (d - s);
		v = v * k.momentum + k.keep2 * d * d;
		p = x - k.lr * s / (root_of(v) / k.root + k.eps);
	} else {
		d = d + k.decay * p;
		if (RULE == MOMENTUM) {
			s = k.momentum * s + d;
			d = k.nesterov != 0 ? d + k.momentum * s : s;
		}
		p = p - k.lr * d;
	}
}

template <int RULE, int E, typename R> QL_DEVICE void step_each(const item<R> &t, int64_t i)
{
	constexpr int S = sizeof(R) == 8 ? QL_E_float64 : QL_E_float32;
	constexpr int states = RULE == ADAM ? 2 : RULE == MOMENTUM ? 1 : 0;
	bool whole = t.vectors && i + EACH <= t.n;
	R p[EACH], g[EACH], s[EACH] = {}, v[EACH] = {};

	load_each<E>(t.gradient, i, t.n, whole, g);
	if (RULE != CLIP)
		load_each<E>(t.value, i, t.n, whole, p);
	if (states > 0)
		load_each<S>(t.state[0], i, t.n, whole, s);
	if (states > 1)
		load_each<S>(t.state[1], i, t.n, whole, v);
	QL_UNROLL
	for (int j = 0; j < EACH; j++)
		step_one<RULE>(t.k, p[j], g[j], s[j], v[j]);
	store_each<E>(t.value, i, t.n, whole, p);
	if (states > 0)
		store_each<S>(t.state[0], i, t.n, whole, s);
	if (states > 1)
		store_each<S>(t.state[1], i, t.n, whole, v);
}

template <int RULE, int E> QL_KERNEL(THREADS) step(const list<typename real<E>::type> l)
{
	for (int64_t chunk = blockIdx.x; chunk < l.chunks; chunk += gridDim.x) {
		int32_t k = 0;

		while (k + 1 < l.items && l.item[k + 1].first <= chunk)
			k++;
		QL_UNROLL
		for (int half = 0; half < CHUNK / (THREADS * EACH); half++) {
			int64_t i = (chunk - l.item[k].first) * CHUNK + (half * THREADS + (int)threadIdx.x) * EACH;

			if (i < l.item[k].n)
				step_each<RULE, E>(l.item[k], i);
		}
	}
}

/* ---- norms ---- */

struct squared {
	const void *at;
	int64_t n, first; /* number of its first sum */
};

struct squares {
	double *sums;
	int64_t chunks; /* of these tensors */
	int32_t items;
	int64_t start[TENSORS]; /* number of the first chunk among them */
	struct squared item[TENSORS];
};

/* Squares of elements begin .. end - 1, by LANES threads; all have the result. A warp has two such teams. */
template <int E> QL_DEVICE double squares_of(const void *at, int64_t begin, int64_t end)
{
	int lane = (int)threadIdx.x % LANES;
	double mine = 0, sum = 0;

	for (int64_t i = begin + lane; i < end; i += LANES * AHEAD) {
		typename real<E>::type x[AHEAD]; /* all under way together */

		QL_UNROLL
		for (int u = 0; u < AHEAD; u++)
			x[u] = i + LANES * u < end ? load<E>(at, i + LANES * u) : 0;
		QL_UNROLL
		for (int u = 0; u < AHEAD; u++)
			mine += (double)x[u] * (double)x[u];
	}
	for (int l = 0; l < LANES; l++)
		sum += __shfl_sync(ALL, mine, l, LANES);
	return sum;
}

/* float64: one chain. */
QL_DEVICE double chain_of(const void *at, int64_t begin, int64_t end)
{
	int lane = (int)threadIdx.x % LANES;
	double sum = 0;

	for (int64_t i = 0; i < SQUARES; i += LANES) {
		int64_t at_i = begin + i + lane;
		double x = at_i < end ? load<QL_E_float64>(at, at_i) : 0;

		x = x * x;
		for (int l = 0; l < LANES; l++)
			sum += __shfl_sync(ALL, x, l, LANES);
	}
	return sum;
}

template <int E> QL_KERNEL(THREADS) sum_squares(const squares q)
{
	constexpr int64_t piece = E == QL_E_float32 ? SQUARES : PIECE;
	int64_t teams = (int64_t)gridDim.x * (THREADS / LANES);

	/* both teams of a warp stay in the loop as long as one of them has a chunk */
	for (int64_t c = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / 32 * 2; c < q.chunks; c += teams) {
		int64_t chunk = c + threadIdx.x / LANES % 2, begin, end;
		bool mine = chunk < q.chunks;
		int32_t k = 0;
		double sum = 0;

		while (k + 1 < q.items && q.start[k + 1] <= chunk)
			k++;
		begin = mine ? (chunk - q.start[k]) * SQUARES : 0;
		end = mine ? min(begin + SQUARES, q.item[k].n) : 0;
		if (E == QL_E_float64)
			sum = chain_of(q.item[k].at, begin, end);
		else
			for (int64_t i = 0; i < SQUARES; i += piece)
				sum += squares_of<E>(q.item[k].at, begin + i, min(begin + i + piece, end));
		if (mine && threadIdx.x % LANES == 0)
			q.sums[q.item[k].first + chunk - q.start[k]] = sum;
	}
}

/* One warp: the sums in order. The next ones are read while these are added. */
QL_KERNEL(32) root_of_sums(const double *sums, int64_t n, double *out)
{
	double sum = 0, next = threadIdx.x < n ? sums[threadIdx.x] : 0;

	for (int64_t i = 0; i < n; i += 32) {
		double x = next;

		next = i + 32 + threadIdx.x < n ? sums[i + 32 + threadIdx.x] : 0;
		for (int l = 0; l < 32 - QL_BUG(norm_last); l++)
			sum += __shfl_sync(ALL, x, l);
	}
	if (threadIdx.x == 0)
		*out = sqrt(sum);
}

/* ---- the call ---- */

static bool is(const struct ql_gpu_call *call, const char *op)
{
	return !strcmp(call->op, op);
}

static const struct ql_gpu_option *option(const struct ql_gpu_call *call, const char *name)
{
	for (int32_t i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, name))
			return &call->options[i];
	return NULL;
}

static bool plain(const struct ql_gpu_tensor *t)
{
	return !t->codes && !(t->flags & QL_GPU_NUMBER) && ql_dense(t);
}

static bool is_stepped(int element)
{
	return element == QL_E_float32 || element == QL_E_float64 || element == QL_E_float16 ||
	       element == QL_E_bfloat16;
}

/* Operands of one tensor of a step; 0: none of `items`. */
static int32_t operands_of(const struct ql_gpu_call *call, int32_t items)
{
	int32_t each = items > 0 && call->n_in % items == 0 ? call->n_in / items : 0;

	if (is(call, "gradient_clip"))
		return each == 1 ? each : 0;
	if (is(call, "adam_step"))
		return each == 4 ? each : 0;
	return each == 2 || each == 3 ? each : 0;
}

static bool plan_item(const struct ql_gpu_tensor *in, int32_t each, struct ql_gpu_plan *p)
{
	int element = ql_element_of(in[0].dtype), state = element == QL_E_float64 ? QL_E_float64 : QL_E_float32;

	for (int32_t i = 0; i < each; i++) {
		if (!plain(&in[i]))
			return ql_refuse(p, "wanted dense tensors of plain numbers");
		if (ql_count(&in[i]) != ql_count(&in[0]))
			return ql_refuse(p, "sizes of a value, its gradient and states differ");
		if (ql_element_of(in[i].dtype) != (i < 2 ? element : state))
			return ql_refuse(p, "dtypes of a value, its gradient and states do not fit");
	}
	return is_stepped(element) || ql_refuse(p, "elements are no floats of 16, 32 or 64 bits");
}

static bool plan_step(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_option *k = option(call, "numbers");
	int32_t items = k && k->type == QL_GPU_OPTION_NUMBERS && k->n % NUMBERS == 0 ? k->n / NUMBERS : 0;
	int32_t each = operands_of(call, items);

	if (!each || items > ITEMS || call->n_out)
		return ql_refuse(p, "wanted values, gradients and states of at most 16 tensors, and their numbers");
	for (int32_t i = 0; i < items; i++)
		if (!plan_item(call->in + i * each, each, p))
			return false;
	p->path = call->in[0].dtype;
	return true;
}

static int64_t chunks_of(const struct ql_gpu_tensor *t)
{
	return (ql_count(t) + SQUARES - 1) / SQUARES;
}

static bool plan_squares(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_option *first = option(call, "first");
	const struct ql_gpu_tensor *sums = &call->in[call->n_in - 1];
	int64_t n = first ? first->i : -1;

	if (call->n_in < 2 || call->n_in > TENSORS || call->n_out || n < 0)
		return ql_refuse(p, "wanted at most 63 tensors, their sums and the number of the first sum");
	for (int32_t i = 0; i + 1 < call->n_in; i++) {
		if (!plain(&call->in[i]))
			return ql_refuse(p, "wanted dense tensors of plain numbers");
		if (!is_stepped(ql_element_of(call->in[i].dtype)))
			return ql_refuse(p, "elements are no floats of 16, 32 or 64 bits");
		n += chunks_of(&call->in[i]);
	}
	if (!plain(sums) || ql_element_of(sums->dtype) != QL_E_float64 || ql_count(sums) < n)
		return ql_refuse(p, "wanted a dense float64 for the sums of all chunks");
	p->path = call->in[0].dtype;
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	if (is(call, "gradient_squares"))
		return plan_squares(call, p);
	if (!is(call, "gradient_norm"))
		return plan_step(call, p);
	if (call->n_in != 1 || call->n_out != 1 || !plain(call->in) || ql_element_of(call->in->dtype) != QL_E_float64 ||
		ql_count(call->out) != 1 || ql_element_of(call->out->dtype) != QL_E_float64)
		return ql_refuse(p, "wanted dense float64 sums and one float64 result");
	p->path = "float64";
	return true;
}

/* ---- running ---- */

template <typename R> static void fill_item(const struct ql_gpu_tensor *in, int32_t each, const double *k, item<R> *to)
{
	uintptr_t addresses = (uintptr_t)in[0].at | (uintptr_t)in[each > 1].at, states = 0;
	R *number = &to->k.scale;

	to->value = in[0].at;
	to->gradient = in[each > 1].at;
	for (int32_t i = 2; i < each; i++) {
		to->state[i - 2] = static_cast<R *>(in[i].at);
		states |= (uintptr_t)in[i].at;
	}
	to->n = ql_count(&in[0]);
	to->vectors = addresses % (EACH * ql_element_get(ql_element_of(in[0].dtype)).bits / 8) == 0 &&
		      states % (EACH * sizeof(R)) == 0;
	for (int i = 0; i < NUMBERS; i++)
		number[i] = (R)k[i];
}

template <int E, typename R>
static cudaError_t launch_step(cudaStream_t stream, const char *op, int32_t each, const list<R> &l)
{
	dim3 blocks = ql_blocks(l.chunks, 1), threads(THREADS);

	if (!strcmp(op, "adam_step"))
		return ql_launch_free(step<ADAM, E>, blocks, threads, stream, l);
	if (!strcmp(op, "gradient_clip"))
		return ql_launch_free(step<CLIP, E>, blocks, threads, stream, l);
	if (each == 3)
		return ql_launch_free(step<MOMENTUM, E>, blocks, threads, stream, l);
	return ql_launch_free(step<SGD, E>, blocks, threads, stream, l);
}

/* Steps the tensors of dtype E. */
template <int E> static cudaError_t run_step(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	typedef typename real<E>::type R;
	const struct ql_gpu_option *k = option(call, "numbers");
	int32_t items = k->n / NUMBERS, each = call->n_in / items;
	list<R> l = {};

	for (int32_t i = 0; i < items; i++) {
		const struct ql_gpu_tensor *in = call->in + i * each;

		if (ql_element_of(in->dtype) != E || ql_count(in) == 0)
			continue;
		fill_item(in, each, k->numbers + i * NUMBERS, &l.item[l.items]);
		l.item[l.items].first = l.chunks;
		l.chunks += (l.item[l.items++].n + CHUNK - 1) / CHUNK;
	}
	return l.chunks ? launch_step<E>(place->stream, call->op, each, l) : cudaSuccess;
}

template <int E> static cudaError_t run_squares(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	int64_t first = option(call, "first")->i;
	squares q = {};

	q.sums = static_cast<double *>(call->in[call->n_in - 1].at);
	for (int32_t i = 0; i + 1 < call->n_in; i++) {
		int64_t chunks = chunks_of(&call->in[i]);

		if (ql_element_of(call->in[i].dtype) == E && chunks) {
			q.item[q.items] = {call->in[i].at, ql_count(&call->in[i]), first};
			q.start[q.items++] = q.chunks;
			q.chunks += chunks;
		}
		first += chunks;
	}
	if (q.chunks == 0)
		return cudaSuccess;
	return ql_launch(sum_squares<E>, ql_blocks(q.chunks, THREADS / LANES), dim3(THREADS), 0, place->stream, q);
}

template <int E> static cudaError_t run_element(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	return is(call, "gradient_squares") ? run_squares<E>(place, call) : run_step<E>(place, call);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	cudaError_t error;

	if (is(call, "gradient_norm"))
		return ql_launch(root_of_sums, dim3(1), dim3(32), 0, place->stream,
			static_cast<const double *>(call->in->at), ql_count(call->in),
			static_cast<double *>(call->out->at));
	error = run_element<QL_E_float32>(place, call);
	if (!error)
		error = run_element<QL_E_float16>(place, call);
	if (!error)
		error = run_element<QL_E_bfloat16>(place, call);
	return error ? error : run_element<QL_E_float64>(place, call);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_optimizer;
const struct ql_gpu_kernel ql_gpu_kernel_optimizer = {"sgd_step adam_step gradient_clip gradient_squares gradient_norm",
	"optimizer", "simt", QL_GPU_BITS, 80, plan, run};
