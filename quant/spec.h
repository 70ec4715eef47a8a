/* SPDX-License-Identifier: MIT
 * The spec: how to quantize. One struct for x:quantize, the options out= and quant=, and the rest of the library. As
 * text: dtype[/axis][:block][@observer] and words, e.g. 'int8', 'int8/1', 'int4:32', 'uint8@mse', 'int8 log bits=6';
 * the grammar is in spec_text.c.
 */
#ifndef QUOLL_QUANT_SPEC_H
#define QUOLL_QUANT_SPEC_H

#include "quant/format.h"

struct ql_observer_kind;
struct ql_spec;
struct ql_view;

/* Finds a range by a function of the host (observer = function). */
typedef enum ql_status ql_choose_fn(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_view *view, double *lo, double *hi);

/* The rounding rule for requantizing sums of codes (quant/integer/fixed.h). */
enum ql_requant { QL_REQUANT_FLOAT, QL_REQUANT_SINGLE, QL_REQUANT_DOUBLE, QL_REQUANT_EXACT };

struct ql_spec {
	unsigned dtype; /* of the codes; a float dtype means a plain cast, no codes */
	int bits;       /* of the codes, 2..16; 1 for binary; of the dtype for floats; of the widest channel */
	struct ql_tensor
		*each_bits; /* borrowed; int8, one dimension: bits of each channel of the axis; NULL: the same */
	const struct ql_scheme *scheme;       /* NULL for floats */
	const struct ql_quant_format *format; /* NULL: none */
	const struct ql_grid_table *grid;     /* values of the codes; NULL: those of the scheme's formula */
	enum ql_scaling scaling;
	bool has_min, has_max;
	int32_t quant_min, quant_max; /* bounds of the codes, if has_min and has_max; else those of the bits */
	bool overflow;                /* saturate=false */
	bool stochastic;              /* rounding of floats to codes; else to nearest */
	int axis;                     /* as given: 1-based, negative from the end; 0: none */
	int64_t block;                /* 0: none */
	int64_t outer; /* scales under an outer scale (double quantization); 0: scales are not quantized */
	const struct ql_observer_kind *observer;
	double p, momentum;     /* of the observers percentile and average */
	int bins;               /* of histograms */
	ql_choose_fn *choose;   /* the observer function; else NULL */
	const void *choose_key; /* identifies that function to the host */
	double octaves;         /* log; 0: default for the bits */
	bool has_scale, has_zero, has_minimum;
	double scale; /* when scale_tensor is NULL */
	int64_t zero;
	double minimum;                                                /* when minimum_tensor is NULL */
	struct ql_tensor *scale_tensor, *zero_tensor, *minimum_tensor; /* borrowed */
	struct ql_tensor *importance; /* borrowed; weights of the columns; NULL: equal weights */
	enum ql_requant requant;      /* for integer results; quantizing floats divides */
};

/* Fields as given in the user's table or text, before validation; absent ones are 0 or NULL. First those of spec.def,
 * then values other than a single word or number. */
struct ql_spec_fields {
#define FIELD_STRING(key) const char *key;
#define FIELD_INT(key) \
	bool has_##key; \
	int64_t key;
#define FIELD_FLOAT(key) \
	bool has_##key; \
	double key;
#define FIELD_BOOL(key) bool has_##key, key;
#define FIELD_TENSOR(key) struct ql_tensor *key;
#define X(key, kind, place, words, text) FIELD_##kind(key)
#include "quant/spec.def"
#undef X
#undef FIELD_STRING
#undef FIELD_INT
#undef FIELD_FLOAT
#undef FIELD_BOOL
#undef FIELD_TENSOR
	bool with_minimum; /* +min */
	struct ql_tensor *each_bits;
	struct ql_tensor *scale_tensor, *zero_tensor, *minimum_tensor;
	ql_choose_fn *choose;
	const void *choose_key;
	const char *bits_list, *scale_list, *zero_list,
		*minimum_list; /* lists of a text; converted to tensors before ql_spec_make */
};

#define QL_SPEC_P 99.99 /* defaults of percentile, average, and histograms */
#define QL_SPEC_MOMENTUM 0.01
#define QL_SPEC_BINS 2048
double ql_spec_octaves(int bits); /* default of the scheme log */

#define QL_SPEC_TEXT 96

/* Parses the text form. The strings in `fields` point into `copy`, which has strlen(text) + 1 bytes. */
enum ql_status ql_spec_split(struct ql_ctx *ctx, const char *text, char *copy, struct ql_spec_fields *fields);
/* Gives the numbers of a list as a contiguous tensor; `what` is the field's name. Integers must be in the dtype's
 * range. */
enum ql_status ql_spec_list(
	struct ql_ctx *ctx, const char *what, const char *text, unsigned dtype, struct ql_tensor **out);
/* Validates the fields and sets defaults. Errors name the field, what was wanted and got. */
enum ql_status ql_spec_make(struct ql_ctx *ctx, const struct ql_spec_fields *fields, struct ql_spec *spec);
/* ql_spec_split and ql_spec_make, for texts without lists. */
enum ql_status ql_spec_parse(struct ql_ctx *ctx, const char *text, struct ql_spec *spec);
/* Prints the text form piece by piece. Parsing it gives an equal spec unless the observer is a function or a list
 * is longer than 4096 numbers. Without `numbers` it is a label for reports, which omits scale, zero_point and the
 * tails of long lists. */
typedef void ql_spec_put_fn(void *arg, const char *text);
void ql_spec_print(const struct ql_spec *spec, bool numbers, ql_spec_put_fn *put, void *arg);
/* The text for messages: lists are shortened, and the text is truncated to the buffer. */
char *ql_spec_text(const struct ql_spec *spec, char text[QL_SPEC_TEXT]);
/* The zero point of channel i when zero_tensor is NULL: the given number, else the middle of symmetric unsigned
 * codes, else 0. */
int32_t ql_spec_zero(const struct ql_spec *spec, int64_t i);
/* Check an explicit scale or zero point of channel i; `who` begins the message. */
enum ql_status ql_spec_check_scale(struct ql_ctx *ctx, const char *who, const struct ql_spec *spec, double scale);
enum ql_status ql_spec_check_zero(
	struct ql_ctx *ctx, const char *who, const struct ql_spec *spec, double zero, int64_t i);
enum ql_status ql_spec_check_minimum(struct ql_ctx *ctx, const char *who, double minimum);
/* The codes of channel i (any i without each_bits), with their range; `wide`: with an explicit scale. */
struct ql_codes ql_spec_codes(const struct ql_spec *spec, bool wide, int64_t i);
/* The fields that make an equal spec: those that are not defaults. Tensors are borrowed, texts are those of tables. */
void ql_spec_fields_of(const struct ql_spec *spec, struct ql_spec_fields *fields);
/* True if all fields and the contents of the tensors are equal. */
bool ql_spec_equal(const struct ql_spec *a, const struct ql_spec *b);
/* Sets *spec to the spec of t's quant params, without explicit scales. */
void ql_spec_of(const struct ql_tensor *t, struct ql_spec *spec);

/* NULL-terminated. */
extern const struct ql_scheme *const ql_schemes[];
const struct ql_scheme *ql_scheme_by_name(const char *name);
/* Allowed words of the fields, separated by spaces, for messages and completion. */
#define QL_SPEC_DTYPES 8192
extern char ql_spec_dtypes[QL_SPEC_DTYPES];
/* Adds the name of a format made at run time to ql_spec_dtypes; false: no room. */
bool ql_spec_add_name(const char *name);
extern const char ql_scheme_names[], ql_observer_names[], ql_requant_names[], ql_priority_names[];
/* Returns the rule's word for the field `rounding`: float, single or double. */
const char *ql_requant_name(enum ql_requant rule);

#endif
