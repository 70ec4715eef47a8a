-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(33)
local x = tensor.randn(5, 6, 4)
local byte = {dtype = 'uint8', scale = 0.02, zero_point = 99}
local function ints(...) return tensor {dtype = 'int64', ...} end

it('reads by indices of an axis and by tuples', function()
	local picks = ints(2, 6, -1, 2)
	back(function(self, a) return a:indexselect(2, self.i) end, x, {parts = {i = picks}})
	back(function(self, a) return a:quantize(byte):indexselect(2, self.i:view(2, 2)) end, x, {parts = {i = picks}, export = {form = 'integer'}})
	back(function(self, a) return a:gathernd(self.i:expand(a:size(1), 3, 2), {batch = 1}) end, x, {parts = {i = ints({1, 1}, {6, 4}, {3, -2}):view(1, 3, 2)}})
	back(function(self, a) return a:select(1, 1):gathernd(self.i) + a:sum {axis = {2, 3}, keep = true}:view(-1, 1) end, x, {parts = {i = ints({1, 1}, {6, 4}, {3, 2})}})
end)

it('assigns by them, in each way', function()
	for _, reduce in ipairs {'none', 'add', 'mul', 'max', 'min'} do
		back(function(self, a) return a:indexassign(2, self.i, self.v, {reduce = reduce}) end, x, {parts = {i = ints(2, 6, 1), v = tensor.randn(3, 4)}})
		back(function(self, a) return a:scatternd(self.i:expand(a:size(1), 3, 1), 3, {batch = 1, reduce = reduce}) end, x, {parts = {i = ints({1}, {6}, {3}):view(1, 3, 1)}})
		back(function(self, a) return a:scatter(2, self.i:expand(a:size(1), 2, 4), a * 2, {reduce = reduce}) end, x,
			{parts = {i = ints({1, 6, 2, 3}, {2, 1, 1, 6}):view(1, 2, 4)}})
	end
end)
