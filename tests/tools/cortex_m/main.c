/* SPDX-License-Identifier: MIT
 * Runs the vectors of an export (vectors.h, made by the test) on a Cortex-M: results byte for byte,
 * instructions of a pass, bytes of stack.
 */
#include <stdint.h>
#include <string.h>

#include "net.h"
#include "vectors.h"

void say(const char *text);
void say_number(uint64_t value);
uint64_t instructions(void);
void stack_paint(void);
uint32_t stack_used(void);

static struct net_state state;
static int8_t result[NET_OUTPUT_COUNT];

int main(void)
{
	int failed = 0, i;
	uint64_t start, most = 0;
	uint32_t before;

	stack_paint();
	before = stack_used();
	for (i = 0; i < VECTORS; i++) {
		start = instructions();
		net_run(&state, inputs[i], result);
		start = instructions() - start;
		most = start > most ? start : most;
		failed += memcmp(result, outputs[i], sizeof(result)) != 0;
	}
	say("vectors ");
	say_number(VECTORS);
	say(" failed ");
	say_number((uint64_t)failed);
	say(" instructions ");
	say_number(most);
	say(" stack ");
	say_number(stack_used() - before);
	say("\n");
	return failed;
}
