/* SPDX-License-Identifier: MIT
 * Documentation and typed named arguments, the first member of every descriptor: `help`, completion, the
 * manual and the argument checks of the binding all read these.
 */
#ifndef QUOLL_TENSOR_ATTR_H
#define QUOLL_TENSOR_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ql_spec; /* quant/spec.h: what to quantize to */
struct ql_tensor;

enum ql_attr_type {
	QL_ATTR_END,    /* ends a list of attributes */
	QL_ATTR_INT,    /* value.i */
	QL_ATTR_FLOAT,  /* value.f */
	QL_ATTR_BOOL,   /* value.b */
	QL_ATTR_STRING, /* value.s, one of `choices` when given */
	QL_ATTR_INTS,   /* value.ints: sizes or axes; empty when one of `choices` was given */
	QL_ATTR_AXIS,   /* value.i: the caller's 1-based axis as given, negative from the end: see ql_axis */
	QL_ATTR_DTYPE,  /* value.i: enum ql_dtype */
	QL_ATTR_SPEC,   /* value.spec */
	QL_ATTR_TENSOR, /* value.tensor */
	QL_ATTR_NUMBERS /* value.numbers: of ops in no table, which no binding calls */
};

/* flags of an attribute */
#define QL_POSITIONAL 1u /* may also be given by position, after the operands */
#define QL_REQUIRED 2u
#define QL_INTEGER_ONLY 4u /* an error when no integer path runs */
/* QL_ATTR_TENSOR: the name of an operand that may be left out, after the others; in the order of the operands. `choices`: the kinds of its
 * dtype. The op itself finds it among its operands, by the dtype. */
#define QL_OPERAND 8u
#define QL_NOT_RESULT 16u /* QL_ATTR_SPEC: of something else than the result */

struct ql_attr {
	const char *name;
	enum ql_attr_type type;
	unsigned flags;
	const char *choices; /* allowed strings, separated by spaces */
	const char *text;    /* one line for help; says the default */
};

struct ql_ints {
	int n;
	int64_t *at;
};

struct ql_numbers {
	int n;
	const double *at;
};

/* One argument as given. `set` is false when it is absent: use the default. */
struct ql_value {
	bool set;
	bool integer; /* QL_ATTR_FLOAT: the caller passed an integer */
	union {
		int64_t i;
		double f;
		bool b;
		const char *s;
		struct ql_ints ints;
		struct ql_numbers numbers;
		const struct ql_spec *spec;
		struct ql_tensor *tensor;
	};
};

struct ql_doc {
	const char *name;
	const char *usage;           /* as typed at the prompt: "x:sum{axis=, keep=}" */
	const char *text;            /* what it does, shapes, units, errors, source of a formula */
	const char *example;         /* Lua that runs; a line may carry its output as `--> output` */
	const struct ql_attr *attrs; /* ended by QL_ATTR_END; NULL: none */
};

#endif
