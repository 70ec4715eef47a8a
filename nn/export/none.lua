-- SPDX-License-Identifier: MIT
-- Ops without a C version, and the reason; tests/nn/export/ops.lua requires an exporter or a reason for every op.
local RANDOM = 'its results are random and differ in each run'
local SIZES = 'its size depends on values'
local FACTOR = 'factors and inverses of matrices are computed before a model is exported; export what uses their result'
local LOSS = 'losses are for training only; export the output of the model'
return {
	rand = RANDOM, randn = RANDOM, randint = RANDOM, dropout = RANDOM .. '; in use nn.Dropout is left out',
	empty = 'its elements have no values', maskedselect = SIZES .. '; tensor.where and sums of products with a mask keep sizes',
	sample = 'it draws tokens for m:generate; C takes the logits of the model', cachedattention = 'it writes into its operands, caches of m:generate; nn.attention has C', recentattention = 'it writes into its operands, caches of m:generate; nn.attention has C',
	split = 'graphs have its pieces as views (narrow)',
	cholesky = FACTOR, inversefactor = FACTOR, choleskyinverse = FACTOR, solvetriangular = FACTOR, gptq = 'weights are quantized before a model is exported',
	nonzero = SIZES, unique = SIZES, bincount = SIZES .. '; x:onehot(n):sum(1) counts numbers up to n',
	mse = LOSS, l1 = LOSS, smoothl1 = LOSS, huber = LOSS, kldiv = LOSS, crossentropy = LOSS, nll = LOSS, bce = LOSS, bcelogits = LOSS,
}
