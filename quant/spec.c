/* SPDX-License-Identifier: MIT
 * Specs: split the short string, validate, fill defaults, print.
 */
#include "quant/spec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/observer.h"
#include "tensor/nearest.h"

#define X(name) extern const struct ql_scheme ql_scheme_##name;
#include "quant/schemes.def"
#undef X

const struct ql_scheme *const ql_schemes[] = {
#define X(name) &ql_scheme_##name,
#include "quant/schemes.def"
#undef X
	NULL,
};

const struct ql_scheme *ql_scheme_by_name(const char *name)
{
	for (int i = 0; ql_schemes[i]; i++)
		if (!strcmp(ql_schemes[i]->doc.name, name))
			return ql_schemes[i];
	return NULL;
}

#define X(name) #name " "
const char ql_scheme_names[] =
#include "quant/schemes.def"
	;
const char ql_observer_names[] =
#include "quant/observers.def"
	;
#undef X
const char ql_requant_names[] = "float single double";
const char ql_priority_names[] = "accuracy speed";
const char ql_spec_dtypes[] = "int8 uint8 int4 uint4 int16 uint16 binary float32 float16 bfloat16";

/* ---- the string form: dtype[/axis][:block][@observer] ---- */

static enum ql_status grammar(struct ql_ctx *ctx, const char *text)
{
	return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted dtype[/axis][:block][@observer] like 'int8/1' or 'int4:32', got '%.60s'",
		text);
}

/* The number behind `mark`, which is cut off; -1: not a number. */
static bool take_number(char *copy, char mark, bool *has, int64_t *value)
{
	char *at = strchr(copy, mark), *end;

	if (!at)
		return true;
	*at++ = '\0';
	*value = strtoll(at, &end, 10);
	*has = true;
	return end != at && *end == '\0';
}

enum ql_status ql_spec_split(struct ql_ctx *ctx, const char *text, char copy[QL_SPEC_TEXT], struct ql_spec_fields *fields)
{
	char *at;

	*fields = (struct ql_spec_fields){0};
	if (strlen(text) >= QL_SPEC_TEXT)
		return grammar(ctx, text);
	strcpy(copy, text);
	at = strchr(copy, '@');
	if (at) {
		*at = '\0';
		fields->observer = at + 1;
	}
	if (!take_number(copy, ':', &fields->has_block, &fields->block) ||
		!take_number(copy, '/', &fields->has_axis, &fields->axis) || copy[0] == '\0')
		return grammar(ctx, text);
	fields->dtype = copy;
	return QL_OK;
}

enum ql_status ql_spec_parse(struct ql_ctx *ctx, const char *text, struct ql_spec *spec)
{
	char copy[QL_SPEC_TEXT];
	struct ql_spec_fields fields;
	enum ql_status status = ql_spec_split(ctx, text, copy, &fields);

	return status ? status : ql_spec_make(ctx, &fields, spec);
}

/* ---- validation ---- */

static bool legal_dtype(int dtype)
{
	return dtype >= 0 && (dtype == QL_binary || dtype == QL_float32 || dtype == QL_float16 || dtype == QL_bfloat16 ||
		((ql_dtypes[dtype].kind == QL_KIND_INT || ql_dtypes[dtype].kind == QL_KIND_UINT) &&
			ql_dtypes[dtype].bits <= 16));
}

/* The bits of the widest channel; what each_bits needs beside it. */
static enum ql_status widest_bits(struct ql_ctx *ctx, const struct ql_spec_fields *f, int *bits)
{
	int64_t n = ql_tensor_nelem(f->each_bits);

	if (!f->has_axis || f->has_block)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted a list together with an axis and without a block, got %s",
			f->has_block ? "a block" : "no axis");
	if (n == 0)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted a number for every channel, got an empty list");
	*bits = 0;
	for (int64_t i = 0; i < n; i++) {
		int one = (int)ql_tensor_at_f64(f->each_bits, i);

		if (one < 2 || one > 16)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted 2 to 16 for every channel, got %d for channel %lld", one,
				(long long)i + 1);
		*bits = one > *bits ? one : *bits;
	}
	return QL_OK;
}

static enum ql_status make_dtype(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	int dtype, bits = f->bits;

	if (f->each_bits && widest_bits(ctx, f, &bits))
		return QL_ERR_ARGUMENT;
	s->each_bits = f->each_bits;
	if (!f->dtype && !bits)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted a dtype or bits, got neither");
	if (bits && (bits < 1 || bits > 16))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted 2 to 16, got a number outside");
	if (!f->dtype) {
		if (bits < 2)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted 2 to 16, got %d; for one bit use dtype 'binary'", bits);
		s->dtype = bits <= 4 ? QL_int4 : bits <= 8 ? QL_int8 : QL_int16;
		s->bits = bits;
		return QL_OK;
	}
	dtype = ql_dtype_by_name(f->dtype);
	if (!legal_dtype(dtype))
		return ql_fail_choice(ctx, "spec: dtype", ql_spec_dtypes, f->dtype);
	s->dtype = (unsigned)dtype;
	s->bits = bits ? bits : ql_dtypes[dtype].bits;
	if (s->bits > ql_dtypes[dtype].bits || (bits == 1 && dtype != QL_binary))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted 2 to %d for %s, got %d", ql_dtypes[dtype].bits, f->dtype,
			s->bits);
	return QL_OK;
}

static enum ql_status make_scheme(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	enum ql_dtype_kind kind = ql_dtypes[s->dtype].kind;
	const char *name = f->scheme;

	if (kind == QL_KIND_FLOAT) {
		if (f->scheme || f->has_axis || f->has_block || f->observer || f->has_scale)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted nothing beside the dtype %s, which is stored as it is",
				ql_dtype_name(s->dtype));
		return QL_OK;
	}
	if (!name)
		name = kind == QL_KIND_BINARY ? "binary" : kind == QL_KIND_UINT || f->has_zero ? "asymmetric" : "symmetric";
	s->scheme = ql_scheme_by_name(name);
	if (!s->scheme)
		return ql_fail_choice(ctx, "spec: scheme", ql_scheme_names, name);
	if (!s->scheme->accepts(s->dtype))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: scheme: wanted one that takes %s, got '%s'", ql_dtype_name(s->dtype),
			name);
	if (f->each_bits && !s->scheme->affine)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bits: wanted one number with the scheme %s, got a list", name);
	if (f->has_zero && !s->scheme->zero)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: zero_point: wanted none with the scheme %s", name);
	return QL_OK;
}

static enum ql_status make_granularity(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	if (f->has_axis && (f->axis == 0 || f->axis > QL_MAX_RANK || f->axis < -QL_MAX_RANK))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: axis: wanted 1 to %d or negative from the end, got %lld", QL_MAX_RANK,
			(long long)f->axis);
	if (f->has_block && (f->block < 1 || f->block > INT32_MAX))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: block: wanted 1 or more elements, got %lld", (long long)f->block);
	s->axis = f->has_axis ? (int)f->axis : 0;
	s->block = f->has_block ? f->block : 0;
	return QL_OK;
}

static enum ql_status make_numbers(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	if (f->has_scale && !f->scale_tensor && !(f->scale > 0 && isfinite(f->scale)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: scale: wanted a finite number > 0, got %g", f->scale);
	if (f->has_zero && !f->has_scale)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: zero_point: wanted together with scale, got it alone");
	if (f->has_zero && !f->zero_tensor && (f->zero < ql_dtypes[s->dtype].lo || f->zero > ql_dtypes[s->dtype].hi))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: zero_point: wanted %lld to %lld for %s, got %lld",
			(long long)ql_dtypes[s->dtype].lo, (long long)ql_dtypes[s->dtype].hi, ql_dtype_name(s->dtype),
			(long long)f->zero);
	if (f->octaves != 0 && (strcmp(s->scheme ? s->scheme->doc.name : "", "log") || !(f->octaves > 0 && f->octaves <= 120)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: octaves: wanted 0 < octaves <= 120 with the scheme log, got %g",
			f->octaves);
	s->has_scale = f->has_scale;
	s->has_zero = f->has_zero;
	s->scale = f->scale;
	s->zero = f->zero;
	s->scale_tensor = f->scale_tensor;
	s->zero_tensor = f->zero_tensor;
	s->octaves = f->octaves != 0 ? f->octaves : s->bits <= 4 ? 6 : 16;
	return QL_OK;
}

#define P 99.99
#define MOMENTUM 0.01
#define BINS 2048

static const char *const requants[] = {"float", "single", "double"};

const char *ql_requant_name(enum ql_requant rule)
{
	return requants[rule];
}

static enum ql_status make_requant(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	for (int i = 0; i < 3 && f->rounding; i++)
		if (!strcmp(f->rounding, requants[i])) {
			s->requant = (enum ql_requant)i;
			break;
		} else if (i == 2)
			return ql_fail_choice(ctx, "spec: rounding", ql_requant_names, f->rounding);
	if (s->requant && !(s->scheme && s->scheme->affine && s->dtype != QL_binary))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: rounding: wanted affine codes of 2 to 16 bits beside it, got %s",
			s->scheme ? s->scheme->doc.name : ql_dtype_name(s->dtype));
	return QL_OK;
}

/* Parameters stand beside the observer that takes them. */
static enum ql_status make_parameters(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	const char *name = s->observer->doc.name;

	if (f->has_p && strcmp(name, "percentile"))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: p: wanted together with the observer percentile, got it with %s", name);
	if (f->has_p && !(f->p > 50 && f->p <= 100))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: p: wanted a percentage above 50, at most 100, got %g", f->p);
	if (f->has_momentum && strcmp(name, "average"))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: momentum: wanted together with the observer average, got it with %s", name);
	if (f->has_momentum && !(f->momentum > 0 && f->momentum <= 1))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: momentum: wanted a number above 0, at most 1, got %g", f->momentum);
	if (f->has_bins && (f->bins < 1024 || f->bins > 16384 || (f->bins & (f->bins - 1))))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: bins: wanted 1024, 2048, 4096, 8192 or 16384, got %lld",
			(long long)f->bins);
	s->p = f->has_p ? f->p : P;
	s->momentum = f->has_momentum ? f->momentum : MOMENTUM;
	s->bins = f->has_bins ? (int)f->bins : BINS;
	return QL_OK;
}

static enum ql_status make_observer(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	if (ql_dtype_is_float(s->dtype)) {
		if (f->has_p || f->has_momentum || f->has_bins || f->choose)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted no observer beside the dtype %s, which is stored as it is",
				ql_dtype_name(s->dtype));
		return QL_OK;
	}
	s->choose = f->choose;
	s->choose_key = f->choose_key;
	s->observer = f->choose ? &ql_observer_function : ql_observer_by_name(f->observer ? f->observer : "minmax");
	if (s->observer == &ql_observer_function && !f->choose)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: observer: wanted the function itself, observer=function(histogram, spec) … end, got its name");
	if (!s->observer)
		return ql_fail_choice(ctx, "spec: observer", ql_observer_names, f->observer);
	return make_parameters(ctx, f, s);
}

#define FINE_BLOCK 32 /* elements for a scale of 4 bits and less */

/* Defaults for what is not given. speed: the usual ones, one scale and the least and largest value. accuracy: a scale for each row, below
 * 5 bits for each block of one, and the range of least squared error. */
static enum ql_status choose_priority(struct ql_ctx *ctx, const struct ql_spec *s, struct ql_spec_fields *f)
{
	bool accurate = f->priority && !strcmp(f->priority, "accuracy");

	if (!f->priority)
		return QL_OK;
	if (!accurate && strcmp(f->priority, "speed"))
		return ql_fail_choice(ctx, "spec: priority", ql_priority_names, f->priority);
	if (ql_dtype_is_float(s->dtype))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: priority: wanted none beside the dtype %s, which is stored as it is",
			ql_dtype_name(s->dtype));
	if (!accurate || f->has_scale)
		return QL_OK;
	if (!f->has_axis && !f->has_block) {
		f->has_block = s->bits <= 4 && s->dtype != QL_binary;
		f->has_axis = !f->has_block;
		f->axis = f->has_axis ? 1 : 0;
		f->block = f->has_block ? FINE_BLOCK : 0;
	}
	if (!f->observer && !f->choose && s->dtype != QL_binary)
		f->observer = "mse";
	return QL_OK;
}

enum ql_status ql_spec_make(struct ql_ctx *ctx, const struct ql_spec_fields *given, struct ql_spec *spec)
{
	struct ql_spec_fields copy = *given, *fields = &copy;
	enum ql_status status;

	*spec = (struct ql_spec){0};
	status = make_dtype(ctx, fields, spec);
	if (!status)
		status = choose_priority(ctx, spec, fields);
	if (!status)
		status = make_scheme(ctx, fields, spec);
	if (!status)
		status = make_granularity(ctx, fields, spec);
	if (!status)
		status = make_numbers(ctx, fields, spec);
	if (!status)
		status = make_observer(ctx, fields, spec);
	if (!status)
		status = make_requant(ctx, fields, spec);
	return status;
}

struct ql_codes ql_spec_codes(const struct ql_spec *spec, bool wide, int64_t i)
{
	struct ql_codes codes = {.bits = (uint8_t)spec->bits, .octaves = (float)spec->octaves};

	if (spec->each_bits)
		codes.bits = (uint8_t)ql_tensor_at_f64(spec->each_bits, i);
	spec->scheme->range(spec->dtype, wide, &codes);
	return codes;
}

/* ---- printing ---- */

#define SHOWN 12 /* channels whose bits are printed */

/* " bits=8,4,2", the first ones of many */
static size_t each_text(const struct ql_tensor *bits, char *text, size_t size)
{
	int64_t n = ql_tensor_nelem(bits);
	size_t used = 0;

	for (int64_t i = 0; i < n && i < SHOWN && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%d", i ? "," : " bits=", (int)ql_tensor_at_f64(bits, i));
	if (n > SHOWN && used < size)
		used += (size_t)snprintf(text + used, size - used, ",... (%lld)", (long long)n);
	return used;
}

char *ql_spec_text(const struct ql_spec *s, char text[QL_SPEC_TEXT])
{
	size_t n = (size_t)snprintf(text, QL_SPEC_TEXT, "%s", ql_dtype_name(s->dtype));
	bool is_unsigned = ql_dtypes[s->dtype].kind == QL_KIND_UINT;
	const char *usual = s->dtype == QL_binary ? "binary" : is_unsigned ? "asymmetric" : "symmetric";

	if (s->axis && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, "/%d", s->axis);
	if (s->block && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, ":%lld", (long long)s->block);
	if (s->observer && strcmp(s->observer->doc.name, "minmax") && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, "@%s", s->observer->doc.name);
	if (s->each_bits && n < QL_SPEC_TEXT)
		n += each_text(s->each_bits, text + n, QL_SPEC_TEXT - n);
	else if (s->bits != ql_dtypes[s->dtype].bits && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, " bits=%d", s->bits);
	if (s->scheme && strcmp(s->scheme->doc.name, usual) && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, " %s", s->scheme->doc.name);
	if (s->scheme && s->p != P && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, " p=%g", s->p);
	if (s->scheme && s->momentum != MOMENTUM && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, " momentum=%g", s->momentum);
	if (s->scheme && s->bins != BINS && n < QL_SPEC_TEXT)
		n += (size_t)snprintf(text + n, QL_SPEC_TEXT - n, " bins=%d", s->bins);
	if (s->requant && n < QL_SPEC_TEXT)
		snprintf(text + n, QL_SPEC_TEXT - n, " rounding=%s", requants[s->requant]);
	return text;
}

static bool same_bits(const struct ql_tensor *a, const struct ql_tensor *b)
{
	int64_t n = a ? ql_tensor_nelem(a) : 0;

	if (!a || !b || n != ql_tensor_nelem(b))
		return a == b;
	for (int64_t i = 0; i < n; i++)
		if (ql_tensor_at_f64(a, i) != ql_tensor_at_f64(b, i))
			return false;
	return true;
}

bool ql_spec_equal(const struct ql_spec *a, const struct ql_spec *b)
{
	return same_bits(a->each_bits, b->each_bits) && a->dtype == b->dtype && a->bits == b->bits && a->scheme == b->scheme && a->axis == b->axis &&
		a->block == b->block && a->observer == b->observer && a->p == b->p && a->momentum == b->momentum &&
		a->bins == b->bins && a->choose == b->choose && a->choose_key == b->choose_key && a->octaves == b->octaves &&
		a->has_scale == b->has_scale && a->scale == b->scale && a->has_zero == b->has_zero && a->zero == b->zero &&
		a->scale_tensor == b->scale_tensor && a->zero_tensor == b->zero_tensor && a->requant == b->requant;
}

void ql_spec_of(const struct ql_tensor *t, struct ql_spec *spec)
{
	*spec = (struct ql_spec){.dtype = t->dtype, .bits = ql_dtypes[t->dtype].bits};
	if (!t->q)
		return;
	spec->bits = t->q->codes.bits;
	spec->each_bits = t->q->bits;
	spec->scheme = t->q->scheme;
	spec->observer = ql_observers[0];
	spec->p = P;
	spec->momentum = MOMENTUM;
	spec->bins = BINS;
	spec->octaves = (double)t->q->codes.octaves;
	spec->block = t->q->block;
	if (t->q->axis >= 0)
		spec->axis = t->q->axis + 1;
	else if (t->q->block && t->q->block_axis != t->rank - 1)
		spec->axis = t->q->block_axis + 1;
}
