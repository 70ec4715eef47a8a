-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

it('multiplies', function()
	local a, b = tensor {{1, 2}, {3, 4}}, tensor {{1, 0, 2}, {0, 1, -1}}
	assert(equal(run('MatMul', {a, b}), {{1, 2, 0}, {3, 4, 2}}))
	assert(equal(run('Gemm', {a, b, tensor {1, 2, 3}}, nil, {fixed = {2, 3}}), {{2, 4, 3}, {4, 6, 5}}))
	assert(equal(run('Gemm', {a, b, tensor {{1}, {2}}}, {transA = 1, alpha = 2.0, beta = 0.5}, {fixed = {2, 3}}), {{2.5, 6.5, -1.5}, {5, 9, 1}}))
	assert(equal(run('Gemm', {a, b:t():contiguous()}, {transB = 1}, {fixed = {2}}), {{1, 2, 0}, {3, 4, 2}}))
	assert(equal(run('Einsum', {a, b}, {equation = 'ij,jk->ki'}), {{1, 3}, {2, 4}, {0, 2}}))
end)
