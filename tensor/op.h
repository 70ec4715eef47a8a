/* SPDX-License-Identifier: MIT
 * Operations. ql_op_apply runs all of them: infer -> choose -> allocate -> run -> record.
 */
#ifndef QUOLL_TENSOR_OP_H
#define QUOLL_TENSOR_OP_H

#include "tensor/attr.h"
#include "tensor/qparams.h"
#include "tensor/tensor.h"

#define QL_MAX_OUT 4 /* results of an op without QL_LIST_OUT */

/* flags of an op */
#define QL_VIEW 1u          /* shares its operand's storage; infer makes the result, there is no eval */
#define QL_NATIVE 2u        /* handles quantized operands itself: never falls back */
#define QL_NUMBERS 4u       /* an operand may be a number */
#define QL_LIST_IN 8u       /* operands are passed as one list */
#define QL_LIST_OUT 16u     /* results are returned as one list */
#define QL_INPLACE 32u      /* has an in-place form name_, which writes into the first operand */
#define QL_FUNCTION 64u     /* tensor.name only, not a method */
#define QL_METHOD 128u      /* method only */
#define QL_ELEMENTWISE 512u /* even with out=, element i of the result depends only on elements i of the operands */
#define QL_CLOSED 1024u     /* reads operands by functions that know closed.h: the codes stay as they are stored */
#define QL_ANYWHERE 2048u   /* eval is made of views, copies and other ops: it runs where its operands are */
#define QL_MAPPED 4096u     /* impl is a struct ql_map whose rows give result 0, though eval is not ql_map_eval */
#define QL_ENCODES 8192u    /* the elements of the result are those of operand 0 under the spec */
/* Except with training=true, or a border along the first axis: row i along the first axis, if the result has as many as operand 0, follows from row i of operand 0 and all
 * of the other operands, with the same bits whatever rows are beside it; for sums of floats: where there are 32 rows at least. */
#define QL_BY_ROWS 16384u
#define QL_WAITING 32768u /* operand 0 may be codes that wait (encode_later.h) if the path that is chosen takes them */
#define QL_AXIS_SECOND 256u /* the axis is the argument after the first operand: x:gather(axis, index) */

struct ql_op;

/* Shape and dtype of one output, filled by infer. */
struct ql_result {
	unsigned dtype;
	int rank;
	int64_t shape[QL_MAX_RANK];
};

/* Where the random numbers of a call begin: those of an op with `draws`, and of the op of its gradient. */
struct ql_random {
	uint64_t seed, first; /* first: counter of tensor/rng.h */
};

/* One application of an op. The caller fills op, in, n_in, weak, attr, into; out is given. */
struct ql_call {
	const struct ql_op *op;
	struct ql_tensor **in; /* borrowed */
	int n_in;
	uint32_t weak;               /* bit i: operand i (< 32) was a literal number and adapts to the others' dtype */
	const struct ql_value *attr; /* one per op->doc.attrs */
	struct ql_tensor *into;      /* destination of an in-place call; else NULL */
	const struct ql_device *device; /* of the operands, where the results will be; set by ql_op_apply */
	struct ql_random random;        /* set when the op runs, if it draws; else by the caller */
	struct ql_result result[QL_MAX_OUT];
	struct ql_tensor *out[QL_MAX_OUT];
	struct ql_tensor **list; /* outputs of a QL_LIST_OUT op, from ql_alloc: the caller frees it */
	/* Number of results; infer sets it, 1 by default. Those beyond op->outputs are for backward only: the tape
	 * always saves them, the caller never gets them. */
	int n_out;
	const char *path, *kernel, *reason; /* for the ledger; static strings */
	enum ql_fit_rule fit;               /* on a device: how the kernel finds the scales of a quantized result */
	struct ql_join *join;               /* what follows, for ql_op_apply_joined; else NULL */
};

/* A call whose operand `at` is the result of the call before it, and a third one, or NULL, whose only operand is its result. A path of
 * the first may compute all at once: then it sets `done`, and the result is the one of the last. */
struct ql_join {
	struct ql_call *second, *third;
	int at;
	bool done;
	uint64_t operands; /* of the second, for the ledger */
};

typedef enum ql_status ql_infer_fn(struct ql_ctx *ctx, struct ql_call *call);
typedef enum ql_status ql_eval_fn(struct ql_ctx *ctx, struct ql_call *call);
struct ql_back;
typedef enum ql_status ql_backward_fn(struct ql_back *b);
/* A value that the op refuses, found by a kernel of a device: the element `position` of the last operand, which has this shape,
 * is `value`; wanted were 1 to `limit`. */
struct ql_fault {
	int64_t position, value, limit;
	int rank;
	const int64_t *shape;
	int axis; /* 0-based, of the attribute of that name; -1: it was not given */
};
typedef enum ql_status ql_fault_fn(struct ql_ctx *ctx, const char *op, const struct ql_fault *fault);
typedef uint32_t ql_saves_fn(const struct ql_call *call);

/* Bits of `saves`: the tensors of a call that backward reads. */
#define QL_SAVE(i) (1u << (i))    /* operand i < 31 */
#define QL_SAVE_RESULT (1u << 31) /* the results */
#define QL_SAVE_ALL 0x7fffffffu   /* all operands */

struct ql_op {
	struct ql_doc doc;            /* becomes the Lua method or function, help, manual */
	uint8_t arity_min, arity_max; /* operands; QL_LIST_IN: any number */
	uint8_t outputs;              /* 0 means 1. Further results are for backward only, see n_out */
	uint32_t flags;
	ql_infer_fn *infer;                                /* shape and dtype rule; a view op fills out[] here */
	ql_eval_fn *eval;                                  /* computes the allocated out[] from in[] */
	bool (*may_overwrite)(const struct ql_call *call); /* whether eval may write to call->into; NULL: never */
	/* Gives the result as one that is computed later (deferred.h), if that pays; NULL: never. */
	enum ql_status (*defer)(struct ql_ctx *ctx, struct ql_call *call, bool *deferred);
	int (*gives)(const struct ql_call
			*call); /* replaces `outputs` where that depends on the options; NULL: use `outputs` */
	bool allocates;         /* eval allocates out[] */
	/* Whether the result is operand 0 itself, which eval then gives without reading its elements; NULL: never. */
	bool (*same)(const struct ql_call *call);
	/* The random words that an inferred call takes; NULL: none. */
	int64_t (*draws)(const struct ql_call *call);
	ql_backward_fn *backward; /* gradients, composed of other ops (back.h); NULL: no gradient */
	uint32_t saves;           /* what backward reads */
	ql_saves_fn *writes;      /* bits of operands that eval writes into; NULL: none but call->into */
	ql_saves_fn *decodes;     /* bits of quantized operands that eval decodes itself, in parts; NULL: none */
	ql_saves_fn *saves_for;   /* replaces `saves` where that depends on the call; NULL: use `saves` */
	/* Of an op with QL_ANYWHERE: why this call needs the host all the same; NULL: it does not. */
	const char *(*host_only)(const struct ql_call *call);
	ql_fault_fn *fault; /* fails with the message of eval for such a value; NULL: op has no such operand */
	const void *impl;   /* data for an eval that several ops share, e.g. struct ql_map */
};

/* An integer implementation of an op, registered by quant/. `match` returns true if it can run the call, else sets
 * *reason to a static string. `eval` allocates out[] and sets call->kernel. */
struct ql_path {
	const char *op;   /* name of the op it serves; NULL: any */
	const char *name; /* as the ledger shows it: "int8" */
	const char *
		codes; /* for quant.ops(): 8, 16 (bits), packed, binary; 16=path where eval names another path, =*: the dtype */
	const char *text;
	bool (*match)(struct ql_call *call, const char **reason);
	ql_eval_fn *eval;
	bool closed;  /* as QL_CLOSED */
	bool waiting; /* operand 0 may be codes that wait, of an op with QL_WAITING */
	bool images;  /* eval reads operands with their channels last (tensor/images.h) as they are stored */
	bool keeps;   /* without out= the result has the dtype and the params of operand 0 */
};

#define QL_PATHS_MOST 64

/* Functions that quant/ registers with the context. */
struct ql_quant {
	const struct ql_path *const *paths; /* NULL-terminated, at most QL_PATHS_MOST */
	/* Gives x quantized by the spec. */
	enum ql_status (*quantize)(
		struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_spec *spec, struct ql_tensor **out);
	/* Gives codes under the spec on a device, whose elements are not set; nor are its scales if *fit is not QL_FIT_OTHER.
	 * *out is NULL if only the host can find the scales. `from`: the dtype that is quantized. x: the plain numbers that
	 * are, as far as they are known: the dtype of the scales of blocks follows from them; else NULL. */
	enum ql_status (*result)(struct ql_ctx *ctx, const struct ql_spec *spec, unsigned from, struct ql_tensor *x,
		int rank, const int64_t *shape, const struct ql_device *device, struct ql_tensor **out,
		enum ql_fit_rule *fit);
	/* The scheme called `name`, for files; NULL when unknown. */
	const struct ql_scheme *(*scheme)(const char *name);
	const struct ql_format_words *formats;
};

/* Formats as files name them. */
struct ql_format_words {
	const struct ql_quant_format *(*by_name)(const struct ql_ctx *ctx, const char *name); /* NULL when unknown */
	enum ql_status (*missing)(
		struct ql_ctx *ctx, const char *name); /* fails: what to do about a name that is unknown */
	const char *(*name)(const struct ql_quant_format *format);
	bool (*scaling_by_name)(const char *name, uint8_t *scaling);
	const char *(*scaling_name)(uint8_t scaling);
	/* Sets the grid of the params, whose scales are not set yet, and checks that the format can have them. */
	enum ql_status (*complete)(struct ql_ctx *ctx, unsigned dtype, struct ql_qparams *q);
	/* Checks dtypes, levels and values of scale and shift, whose shapes are right. */
	enum ql_status (*check_scales)(struct ql_ctx *ctx, unsigned dtype, const struct ql_qparams *q);
	/* Gives a tensor in the format `name`, one of quant/blocks: codes are not set, scales are 0. */
	enum ql_status (*room)(
		struct ql_ctx *ctx, const char *name, int rank, const int64_t *shape, struct ql_tensor **out);
};

/* The op without the tape and the ledger: infer -> choose -> allocate -> run, for operands in the host's memory or an op
 * with QL_VIEW or QL_ANYWHERE. For op.c and device_run.c. */
enum ql_status ql_op_eval(struct ql_ctx *ctx, struct ql_call *call);
/* Takes the random words of an inferred call, once. */
void ql_call_draw(struct ql_ctx *ctx, struct ql_call *call);
/* The integer path of a call with quantized operands or plain integers; NULL: none, *reason says why. */
const struct ql_path *ql_call_path(struct ql_ctx *ctx, struct ql_call *call, const char **reason);
/* An option that only integer paths support is an error without such a path. */
enum ql_status ql_call_check_integer(struct ql_ctx *ctx, const struct ql_call *call, const char *reason);
/* The two ends of an in-place call, for the same files: whether `into` may be written, and the result put into it. */
enum ql_status ql_call_check_into(struct ql_ctx *ctx, const struct ql_call *call);
enum ql_status ql_call_write_into(struct ql_ctx *ctx, struct ql_call *call);
/* Whether an integer path serves the call and gives its result under the params of operand 0. */
bool ql_call_keeps_params(struct ql_ctx *ctx, struct ql_call *call);
/* Releases the results of a call. */
void ql_call_drop(struct ql_ctx *ctx, struct ql_call *call);
/* Runs the call; on QL_OK the outputs are given in call->out (or call->list). On an error no tensor is left. */
enum ql_status ql_op_apply(struct ql_ctx *ctx, struct ql_call *call);
/* Applies `first` and then `join->second`, whose operand `join->at` is the only result of `first`, and join->third: at once if the path
 * of `first` can. The bits, the ledger and errors are those of single calls; the result is in the last of them. Not for calls that are
 * differentiated. */
enum ql_status ql_op_apply_joined(struct ql_ctx *ctx, struct ql_call *first, struct ql_join *join);
/* ql_op_apply with one or two operands (b may be NULL) and no attributes, for calls inside the library. */
enum ql_status ql_op_run(
	struct ql_ctx *ctx, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *b, struct ql_tensor **out);

/* NULL-terminated tables of the ops of this folder. */
extern const struct ql_op *const ql_ops[];
const struct ql_op *ql_op_by_name(const struct ql_op *const *table, const char *name);

/* Whether an operand is quantized. */
bool ql_call_quantized(const struct ql_call *call);
/* The only quantized operand, where all others are numbers; -1: there is none. */
int ql_call_one_quantized(const struct ql_call *call);
/* The attribute called `name`, or NULL when the op has none or it was not given. */
const struct ql_value *ql_call_attr(const struct ql_call *call, const char *name);
/* The value of attribute `name`, or `otherwise` when it is absent. */
int64_t ql_call_int(const struct ql_call *call, const char *name, int64_t otherwise);
double ql_call_float(const struct ql_call *call, const char *name, double otherwise);
bool ql_call_bool(const struct ql_call *call, const char *name, bool otherwise);
const char *ql_call_string(const struct ql_call *call, const char *name, const char *otherwise);
/* 0-based axis of attribute `name` for operand 0; *axis is unchanged when the attribute is absent. */
enum ql_status ql_call_axis(struct ql_ctx *ctx, const struct ql_call *call, const char *name, int *axis);

/* Sets result[i] */
/* Results that the caller of the op gets. */
int ql_call_outputs(const struct ql_call *call);
void ql_result_set(struct ql_call *call, int i, unsigned dtype, int rank, const int64_t *shape);
/* Broadcasts all operands' shapes into result[0]; fails naming the op and both shapes. */
enum ql_status ql_infer_broadcast(struct ql_ctx *ctx, struct ql_call *call);
/* Same shape and dtype as operand 0 (float32 when it is quantized). */
enum ql_status ql_infer_same(struct ql_ctx *ctx, struct ql_call *call);
/* The dtype that an operand counts as: float32 when quantized. */
unsigned ql_operand_dtype(const struct ql_tensor *t);

#endif
