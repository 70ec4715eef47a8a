/* SPDX-License-Identifier: MIT
 * Batch normalization and its gradient, with the formulas of nn/ops/batchnorm.c and the order of nn/channels.c: a thread for
 * each position of a channel adds over n, then one thread for each channel adds the positions, in pieces of 512, in order.
 * A block has the positions of one piece, or of several channels. Dense operands of one type are read without a choice of the type,
 * so that many loads are under way together, and results are written 16 bytes at a time.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/strided.h"

#define POSITIONS 512 /* of a piece */
#define FEW 64        /* positions of a block of short channels */
#define THREADS 256

/* Sums of d = x - shift, d^2, g and g d. */
struct sums {
	double of[4];
};
struct line {
	double mean, a, b, slope;
};

struct vector {
	const void *at;
	int64_t stride;
	int32_t element;
};

struct work {
	const void *x, *g;
	void *out;
	ql_strided walk; /* over (n, channels, length): operand 0 x, operand 1 g */
	int32_t x_type, g_type, to_type;
	int64_t n, channels, length, pieces, group;
	struct sums *piece; /* (channels, pieces) */
	struct line *line;  /* (channels) */
	vector weight, bias, mean, var, dweight, dbias;
	bool dense, training, updates, back;
	double epsilon, momentum;
	bool unbiased;
};

#define ANY (-1)
/* Images that a thread reads together. */
template <int TYPE> constexpr int AHEAD = TYPE == ANY ? 1 : 16;

union room {
	double of[4][POSITIONS];
};

template <typename T> QL_DEVICE T element(int type, const void *at, int64_t i)
{
	return type == QL_E_float64 ? (T) static_cast<const double *>(at)[i] : (T)ql_load_small(type, at, i);
}
/* Element i of (n, channels, length), in the computed type. TYPE: that of dense operands, or ANY. */
template <int TYPE, typename T> QL_DEVICE void load(const work &k, int64_t i, T *x, T *g)
{
	int64_t at[QL_STRIDED_MOST] = {i, i};

	if (TYPE == ANY && !k.dense)
		ql_strided_at(k.walk, i, at);
	*x = element<T>(TYPE == ANY ? k.x_type : TYPE, k.x, at[0]);
	*g = k.back ? element<T>(TYPE == ANY ? k.g_type : TYPE, k.g, at[1]) : 0;
}
QL_DEVICE double get(const vector &v, int64_t c)
{
	return ql_load_f64(v.element, v.at, c * v.stride);
}
QL_DEVICE void put(const vector &v, int64_t c, double value)
{
	ql_store_f64(v.element, const_cast<void *>(v.at), c * v.stride, value);
}

/* The first number of a channel. */
template <typename T> QL_DEVICE double shift_of(const work &k, int64_t c)
{
	T x, g;

	load<ANY>(k, c * k.length, &x, &g);
	return (double)x;
}

/* Adds images r … r + AHEAD<TYPE> - 1 of a position whose element of image 0 is `from`. */
template <typename T, int TYPE>
QL_DEVICE void add_images(struct sums &s, const work &k, int64_t r, int64_t from, double shift)
{
	int64_t step = k.channels * k.length;
	T x[AHEAD<TYPE>], g[AHEAD<TYPE>];

	QL_UNROLL
	for (int u = 0; u < AHEAD<TYPE>; u++)
		if (r + u < k.n)
			load<TYPE>(k, from + (r + u) * step, &x[u], &g[u]);
	QL_UNROLL
	for (int u = 0; u < AHEAD<TYPE>; u++) {
		double d;

		if (r + u >= k.n)
			break;
		d = (double)x[u] - shift;
		s.of[0] += d;
		s.of[1] += d * d;
		if (k.back) {
			s.of[2] += (double)g[u];
			s.of[3] += (double)g[u] * d;
		}
	}
}

template <typename T, int TYPE> QL_KERNEL(POSITIONS) add_positions(work k)
{
	QL_SHARED(union room, room);
	int64_t first = k.pieces > 1 ? blockIdx.x / k.pieces : blockIdx.x * k.group;
	int64_t at = k.pieces > 1 ? blockIdx.x % k.pieces * POSITIONS : 0, i = threadIdx.x, end;
	int64_t channels = k.pieces > 1 ? 1 : min(k.group, k.channels - first);
	int64_t count = k.pieces > 1 ? min((int64_t)POSITIONS, k.length - at) : channels * k.length;
	struct sums s = {{0, 0, 0, 0}};

	if (i < count) {
		double shift = shift_of<T>(k, first + (at + i) / k.length);

		for (int64_t r = 0; r < k.n; r += AHEAD<TYPE>)
			add_images<T, TYPE>(s, k, r, first * k.length + at + i, shift);
		for (int q = 0; q < 4; q++)
			room.of[q][i] = s.of[q];
	}
	if (!QL_BUG(batchnorm_barrier))
		__syncthreads();
	for (i = threadIdx.x; i < channels * 4; i += blockDim.x) {
		int64_t c = i / 4, length = k.pieces > 1 ? count : k.length;
		double sum = 0;

		end = (c + 1) * length;
		for (int64_t p = c * length; p < end; p++)
			sum += room.of[i % 4][p];
		k.piece[k.pieces > 1 ? (int64_t)blockIdx.x : first + c].of[i % 4] = sum;
	}
}

QL_DEVICE struct sums sums_of(const work &k, int64_t c)
{
	struct sums s = k.piece[c * k.pieces];

	for (int64_t p = 1; p < k.pieces; p++)
		for (int q = 0; q < 4; q++)
			s.of[q] += k.piece[c * k.pieces + p].of[q];
	return s;
}

/* The function of each channel; in training the running statistics, in a backward the gradients of weight and bias. */
template <typename T> QL_KERNEL(THREADS) set_lines(work k)
{
	double m = (double)k.n * (double)k.length;

	for (int64_t c = ql_thread(); c < k.channels; c += ql_threads()) {
		bool some = m > 0 && (k.training || k.back);
		double shift = some ? shift_of<T>(k, c) : 0, mean, var;
		struct sums s = {{0, 0, 0, 0}};
		struct line l = {0, 0, 0, 0};

		if (some)
			s = sums_of(k, c);
		if (k.training) {
			double d = s.of[0] / m;

			mean = shift + d;
			var = s.of[1] / m - d * d;
			var = var < 0 ? 0 : var;
		} else {
			mean = get(k.mean, c);
			var = get(k.var, c);
		}
		l.mean = (double)(T)mean;
		if (k.back) {
			double r = 1 / sqrt(var + k.epsilon), product = (s.of[3] - (mean - shift) * s.of[2]) * r;

			put(k.dweight, c, product);
			put(k.dbias, c, s.of[2]);
			l.a = get(k.weight, c) * r;
			if (k.training) {
				l.slope = product / m * r;
				l.b = s.of[2] / m - (mean - l.mean) * l.slope;
			}
		} else {
			l.a = get(k.weight, c) / sqrt(var + k.epsilon);
			l.b = get(k.bias, c) - (mean - l.mean) * l.a;
		}
		k.line[c] = l;
		if (k.updates) {
			put(k.mean, c, (1 - k.momentum) * get(k.mean, c) + k.momentum * mean);
			put(k.var, c, (1 - k.momentum) * get(k.var, c) + k.momentum * var * (k.unbiased ? m / (m - 1) : 1));
		}
	}
}

/* Divisions of 64 bits are slow. */
QL_DEVICE int64_t channel_of(const work &k, int64_t i, int64_t count)
{
	if (count <= INT32_MAX)
		return (uint32_t)i / (uint32_t)k.length % (uint32_t)k.channels;
	return i / k.length % k.channels;
}

template <typename T> QL_DEVICE T applied(const work &k, const struct line &l, T x, T g)
{
	return k.back ? (g - (T)l.b - (x - (T)l.mean) * (T)l.slope) * (T)l.a : (x - (T)l.mean) * (T)l.a + (T)l.b;
}

template <typename T> QL_KERNEL(THREADS) apply(work k)
{
	int64_t count = k.n * k.channels * k.length;

	for (int64_t i = ql_thread(); i < count; i += ql_threads()) {
		T x, g, y;

		load<ANY>(k, i, &x, &g);
		y = applied(k, k.line[channel_of(k, i, count)], x, g);
		if (k.to_type == QL_E_float64)
			static_cast<double *>(k.out)[i] = (double)y;
		else
			ql_store_small(k.to_type, k.out, i, (float)y);
	}
}

/* Dense operands and result of one type, 16 bytes at a time. */
template <int TYPE> QL_KERNEL(THREADS) apply_16(work k)
{
	constexpr int EACH = TYPE == QL_E_float32 ? 4 : 8;
	int64_t count = k.n * k.channels * k.length;
	bool one = k.length % EACH == 0; /* channel in 16 bytes */

	for (int64_t v = ql_thread(); v < count / EACH; v += ql_threads()) {
		uint4 x = ql_load_16(static_cast<const uint4 *>(k.x) + v), y;
		uint4 g = k.back ? ql_load_16(static_cast<const uint4 *>(k.g) + v) : x;
		struct line l = k.line[channel_of(k, v * EACH, count)];

		QL_UNROLL
		for (int i = 0; i < EACH; i++) {
			if (i && !one && !QL_BUG(batchnorm_channel))
				l = k.line[channel_of(k, v * EACH + i, count)];
			ql_store_small(TYPE, &y, i, applied(k, l, ql_load_small(TYPE, &x, i), ql_load_small(TYPE, &g, i)));
		}
		ql_store_16(static_cast<uint4 *>(k.out) + v, y);
	}
}

/* ---- the call ---- */

static bool is_back(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "batchnorm_back");
}

/* (n, channels, length) of x. */
static void measure(const struct ql_gpu_tensor *x, work *k)
{
	k->n = x->shape[0];
	k->channels = x->shape[1];
	k->length = 1;
	for (int d = 2; d < x->rank; d++)
		k->length *= x->shape[d];
	k->pieces = k->length > POSITIONS ? (k->length + POSITIONS - 1) / POSITIONS : 1;
	k->group = k->length >= FEW || k->length == 0 ? 1 : FEW / k->length;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = &call->in[is_back(call)];
	struct work k = {};

	for (int i = 0; i < call->n_in + call->n_out; i++) {
		const struct ql_gpu_tensor *t = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
		int element = ql_element_of(t->dtype);

		if (t->codes || (t->flags & QL_GPU_NUMBER))
			return ql_refuse(p, "wanted plain numbers on the device");
		if (!ql_element_whole(element) || !ql_element_float(element))
			return ql_refuse(p, "elements that are no floats");
		if (i >= call->n_in && !ql_dense(t))
			return ql_refuse(p, "the result is a view");
	}
	measure(x, &k);
	p->path = ql_element_of(call->out->dtype) == QL_E_float64 ? "float64" : "float32";
	p->workspace = (uint64_t)k.channels * ((uint64_t)k.pieces * sizeof(struct sums) + sizeof(struct line));
	return true;
}

static vector vector_of(const struct ql_gpu_tensor *t)
{
	return vector{t->at, t->stride[0], ql_element_of(t->dtype)};
}

static struct work work_of(const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *in = call->in;
	bool back = is_back(call);
	const struct ql_gpu_tensor *x = &in[back];
	struct work k = {};

	measure(x, &k);
	k.back = back;
	k.x = x->at;
	k.g = back ? in[0].at : NULL;
	k.out = call->out->at;
	k.x_type = ql_element_of(x->dtype);
	k.g_type = back ? ql_element_of(in[0].dtype) : k.x_type;
	k.to_type = ql_element_of(call->out->dtype);
	k.walk = ql_strided_of(x, back ? in : NULL, ~0u);
	k.dense = ql_dense(x) && (!back || ql_dense(in));
	k.training = ql_option_integer(call, "training", 0) != 0;
	k.updates = k.training && !back && call->n_in == 5;
	k.epsilon = ql_option_number(call, "eps", 1e-5);
	k.momentum = ql_option_number(call, "momentum", 0.1);
	k.unbiased = ql_option_integer(call, "unbiased", 1);
	k.weight = vector_of(&in[back ? 2 : 1]);
	if (call->n_in == 5) {
		k.mean = vector_of(&in[3]);
		k.var = vector_of(&in[4]);
	}
	if (back) {
		k.dweight = vector_of(&call->out[1]);
		k.dbias = vector_of(&call->out[2]);
	} else {
		k.bias = vector_of(&in[2]);
	}
	k.piece = static_cast<struct sums *>(call->workspace);
	k.line = reinterpret_cast<struct line *>(k.piece + k.channels * k.pieces);
	return k;
}

template <typename T, int TYPE> static cudaError_t launch_sums(const struct ql_gpu_place *place, const work &k)
{
	int64_t blocks = k.pieces > 1 ? k.channels * k.pieces : (k.channels + k.group - 1) / k.group;
	int64_t threads = k.pieces > 1 ? POSITIONS : (k.group * k.length + 31) / 32 * 32;

	return ql_launch(add_positions<T, TYPE>, dim3((unsigned)blocks), dim3((unsigned)threads), sizeof(union room),
		place->stream, k);
}

template <typename T> static cudaError_t launch_lines(const struct ql_gpu_place *place, const work &k)
{
	return ql_launch_free(set_lines<T>, ql_blocks(k.channels, THREADS), dim3(THREADS), place->stream, k);
}

/* For operands and results that one dense type describes. */
template <int TYPE> static cudaError_t launch_16(const struct ql_gpu_place *place, const work &k)
{
	int64_t count = k.n * k.channels * k.length;
	cudaError_t error = k.training || k.back ? launch_sums<float, TYPE>(place, k) : cudaSuccess;

	if (!error)
		error = launch_lines<float>(place, k);
	if (error)
		return error;
	return ql_launch_free(apply_16<TYPE>, ql_blocks(count * ql_element_get(TYPE).bits / 128, THREADS),
		dim3(THREADS), place->stream, k);
}

template <typename T> static cudaError_t launch(const struct ql_gpu_place *place, const work &k)
{
	int64_t count = k.n * k.channels * k.length;
	cudaError_t error = cudaSuccess;

	if (count && (k.training || k.back))
		error = launch_sums<T, ANY>(place, k);
	if (!error)
		error = launch_lines<T>(place, k);
	if (error || count == 0)
		return error;
	return ql_launch_free(apply<T>, ql_blocks(count, THREADS), dim3(THREADS), place->stream, k);
}

/* The type of all operands if they are dense and in whole units of 16 bytes. */
static int dense_type(const work &k)
{
	uintptr_t at = (uintptr_t)k.x | (uintptr_t)k.g | (uintptr_t)k.out;
	int64_t count = k.n * k.channels * k.length;

	return k.dense && k.x_type == k.g_type && k.x_type == k.to_type && at % 16 == 0 && count &&
			       count * ql_element_get(k.x_type).bits % 128 == 0
		       ? k.x_type
		       : ANY;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct work k = work_of(call);

	if (k.channels == 0)
		return cudaSuccess;
	switch (dense_type(k)) {
	case QL_E_float32: return launch_16<QL_E_float32>(place, k);
	case QL_E_float16: return launch_16<QL_E_float16>(place, k);
	case QL_E_bfloat16: return launch_16<QL_E_bfloat16>(place, k);
	default: return k.to_type == QL_E_float64 ? launch<double>(place, k) : launch<float>(place, k);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_batchnorm;
const struct ql_gpu_kernel ql_gpu_kernel_batchnorm = {
	"batchnorm batchnorm_back", "batchnorm", "simt", QL_GPU_BITS, 80, plan, run};
