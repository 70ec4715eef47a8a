-- SPDX-License-Identifier: MIT
-- Ops without a C version, and the reason; tests/nn/export/ops.lua requires an exporter or a reason for every op.
local RANDOM = "its numbers are random, and each run's are others"
local LOSS = 'a loss is for training; export what the model gives'
return {
	rand = RANDOM, randn = RANDOM, randint = RANDOM, dropout = RANDOM .. '; in use nn.Dropout is left out',
	empty = 'its elements have no values', maskedselect = 'its size depends on values; tensor.where and sums of products with a mask keep sizes',
	mse = LOSS, crossentropy = LOSS, bce = LOSS, bcelogits = LOSS,
}
