/* SPDX-License-Identifier: MIT
 * JSON for messages. In: bounded, checked text goes to cJSON. Out: written piece by piece, because texts of
 * Lua may hold the byte 0 and bytes that are no UTF-8. Threads other than the interpreter's write, too, so
 * memory is malloc's (tensor/io/json.h counts its own in the context).
 */
#ifndef QUOLL_INTERP_JUPYTER_WIRE_H
#define QUOLL_INTERP_JUPYTER_WIRE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* A text that grows. `failed`: there was no memory; all that follows does nothing. */
struct ql_wire {
	char *at; /* NULL when empty; no 0 at the end */
	size_t n, room;
	bool failed;
};

void ql_wire_add(struct ql_wire *t, const char *bytes, size_t n);
void ql_wire_put(struct ql_wire *t, const char *text);
__attribute__((format(printf, 2, 3))) void ql_wire_print(struct ql_wire *t, const char *format, ...);
/* In quotes; what is no UTF-8 becomes U+FFFD. */
void ql_wire_quote(struct ql_wire *t, const char *bytes, size_t n);
void ql_wire_quote_0(struct ql_wire *t, const char *text);
void ql_wire_base64(struct ql_wire *t, const char *bytes, size_t n);
void ql_wire_free(struct ql_wire *t);

/* The object in the text; NULL, with the reason in *why (a constant), when it is none, is nested too deeply, has a name
 * twice at its top, or a NUL character in a text, which cJSON would take for its end. To be freed by
 * cJSON_Delete. */
cJSON *ql_wire_read(const char *text, size_t n, const char **why);

/* Members of an object. Text: NULL when it is not there or no text. */
const char *ql_wire_member(const cJSON *object, const char *name);
bool ql_wire_flag(const cJSON *object, const char *name, bool otherwise);
/* Integers within +-2^53; anything else is `otherwise`. */
long long ql_wire_integer(const cJSON *object, const char *name, long long otherwise);

#endif
