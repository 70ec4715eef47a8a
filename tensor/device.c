/* SPDX-License-Identifier: MIT
 * The CPU device.
 */
#include "tensor/device.h"

const struct ql_device ql_device_cpu = {
	.doc = {.name = "cpu",
		.usage = "x:to 'cpu'",
		.text = "The processor this program runs on.",
		.example = "print(tensor{1}:device())  --> cpu"},
	.alloc = ql_alloc,
	.free = ql_free,
};
