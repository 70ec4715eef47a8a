/* SPDX-License-Identifier: MIT
 * Recordings: the kernels of a run on a device, kept to be run again at once on other inputs of the same shapes and dtypes. Between
 * begin and end ops are queued as always, but nothing runs; what cannot be kept (waiting for a value, writing to memory from
 * before, random numbers, an op on the host) makes the recording useless, and the caller runs the ops again without one.
 */
#ifndef QUOLL_TENSOR_RECORDING_H
#define QUOLL_TENSOR_RECORDING_H

#include "tensor/tensor.h"

struct ql_recording;

/* Why runs on these inputs cannot be recorded now; NULL: they can. */
const char *ql_recording_refusal(const struct ql_ctx *ctx, int n, struct ql_tensor *const *in);
/* Begins one, with memory of its own for the inputs; gives *out, which ql_recording_free ends in any state. `training`: a step that
 * writes into memory from before (running statistics), and reads weights that others write; the results of all runs are the same
 * tensors. Otherwise it writes into nothing but its own, and each run gives results of its own. */
enum ql_status ql_recording_begin(
	struct ql_ctx *ctx, int n, struct ql_tensor *const *in, bool training, struct ql_recording **out);
/* Input i, borrowed: what the ops of the recording are to be applied to. */
struct ql_tensor *ql_recording_input(const struct ql_recording *r, int i);
/* t is a constant of the run, perhaps a number that the host has read: the recording holds until it is written to. */
void ql_recording_constant(struct ql_ctx *ctx, struct ql_recording *r, const struct ql_tensor *t);
/* Ends it; the results are those of the ops. An error says why it is useless; so does the ledger, where it is not the device's: a row
 * "graph", path "unrecorded". */
enum ql_status ql_recording_end(struct ql_ctx *ctx, struct ql_recording *r, int n, struct ql_tensor *const *results);
/* False: what it has read (in training: what the host has read) was written to since, or its memory was needed. */
bool ql_recording_holds(const struct ql_recording *r);
/* Queues all of it on other inputs and gives the results. The ledger counts what it counted in the recorded
 * run, and a row "graph", path "replay". */
enum ql_status ql_recording_run(
	struct ql_ctx *ctx, struct ql_recording *r, struct ql_tensor *const *in, struct ql_tensor **out);
int ql_recording_results(const struct ql_recording *r);
void ql_recording_free(struct ql_ctx *ctx, struct ql_recording *r);

/* Gives back the memory of all recordings of the device but the one that runs; they do not hold any more. False: there were
 * none. */
bool ql_recordings_drop(struct ql_ctx *ctx, const struct ql_device *device);
/* Their number and bytes, on all devices. */
int ql_recordings_count(const struct ql_ctx *ctx, size_t *bytes);

/* ---- for those who queue work, while ctx->recording is set ---- */

/* Tensors that what is queued reads or writes. */
void ql_recording_note(struct ql_ctx *ctx, const struct ql_tensor *t, bool written);
struct ql_call;
void ql_recording_call(struct ql_ctx *ctx, const struct ql_call *call);
/* The host has read bytes of a remote storage, from its mirror. */
void ql_recording_known(struct ql_ctx *ctx, struct ql_storage *s);
/* The recording is useless; the first reason is kept. Returns a status with it. */
enum ql_status ql_recording_refuse(struct ql_ctx *ctx, const char *why);

#endif
