/* SPDX-License-Identifier: MIT
 * Start-up code of a Cortex-M4 for the emulator (qemu-system-arm -M mps2-an386): vectors, memory, and text
 * and the exit code by semihosting (Arm IHI 0071). SysTick counts the processor's clock of 25 MHz; under
 * -icount shift=0 an instruction takes 1 ns of it, so a tick is 40 instructions.
 */
#include <stddef.h>
#include <stdint.h>

int main(void);
extern uint32_t data_load[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];

static int semihosting(int operation, const void *argument)
{
	register int r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = argument;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

void say(const char *text)
{
	semihosting(0x04, text); /* SYS_WRITE0 */
}

void say_number(uint64_t value)
{
	char text[24], *at = text + sizeof(text);

	*--at = 0;
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	say(at);
}

static void leave(uint32_t code)
{
	uint32_t block[2] = {0x20026, code}; /* ADP_Stopped_ApplicationExit */

	semihosting(0x20, block); /* SYS_EXIT_EXTENDED */
	for (;;)
		;
}

#define SYST ((volatile uint32_t *)0xe000e010)
static volatile uint32_t wraps;

static void tick(void)
{
	wraps++;
}

/* Instructions since the start, in steps of 40. */
uint64_t instructions(void)
{
	uint32_t high, low;

	do {
		high = wraps;
		low = 0xffffff - SYST[2];
	} while (high != wraps);
	return 40 * (((uint64_t)high << 24) + low);
}

/* Fills the memory below the stack pointer, and says how much of it was used since. */
#define PAINTED 16384
static uint32_t *painted_from(void)
{
	return (uint32_t *)((uintptr_t)stack_top - PAINTED);
}

void stack_paint(void)
{
	uint32_t here;

	__asm__("mov %0, sp" : "=r"(here));
	for (volatile uint32_t *p = painted_from(); (uintptr_t)p < here; p++)
		*p = 0xdeadbeef;
}

uint32_t stack_used(void)
{
	const volatile uint32_t *p = painted_from();

	while (*p == 0xdeadbeef)
		p++;
	return (uint32_t)((uintptr_t)stack_top - (uintptr_t)p);
}

static void reset(void)
{
	uint32_t *from = data_load;

	for (uint32_t *to = data_start; to < data_end;)
		*to++ = *from++;
	for (uint32_t *to = bss_start; to < bss_end;)
		*to++ = 0;
	SYST[1] = 0xffffff;
	SYST[2] = 0;
	SYST[0] = 7;
	leave((uint32_t)main());
}

static void fault(void)
{
	say("fault\n");
	leave(99);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {(void (*)(void))stack_top, reset,
	fault, fault, fault, fault, fault, NULL, NULL, NULL, NULL, fault, fault, NULL, fault, tick};
