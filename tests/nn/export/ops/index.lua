-- SPDX-License-Identifier: MIT
-- labels: full
-- Elements by numbers and by masks in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = tensor.randn(20, 5, 4)
local parts = {i=tensor {-1, 2, 4, -4, 1, dtype='int32'}:view(1, 1, 5), v=tensor.randn(4)}
exported.functions({
	gather = function(self, a) return a:gather(3, self.i:expand(a:size(1), 5, 5)) end,
	['gather from fewer'] = function(self, a) return a:gather(2, self.i:narrow(3, 1, 2):transpose(2, 3):expand(a:size(1), 2, 3)) end,
	['gather of integers'] = function(_, a) return (a * 9):to('int16'):gather(2, a:argmax {axis=2, keep=true}) end,
	['gather of codes'] = function(_, a) return a:quantize {dtype='int8', scale=0.03}:gather(2, a:argmin {axis=2, keep=true}) end,
	scatter = function(_, a) return a:scatter(2, a:argmax {axis=2, keep=true}, a * 2) end,
	['scatter of a number'] = function(_, a) return a:scatter(-1, a:argmax {axis=3, keep=true}, 7) end,
	['the last wins'] = function(self, a) return a:scatter(3, self.i:expand(a:size(1), 5, 5), a:tile(1, 1, 2)) end,
	['all are added'] = function(self, a) return a:scatter(3, self.i:expand(a:size(1), 5, 5), a:tile(1, 1, 2), {add=true}) end,
	['integers are added and wrap'] = function(_, a) return (a * 99):to('int8'):scatter(2, a:argmax {axis=2, keep=true}, (a * 99):to('int32'), {add=true}) end,
	['floats into integers'] = function(_, a) return (a * 9):to('int32'):scatter(2, a:argmax {axis=2, keep=true}, a * 40) end,
	['rows of a table'] = function(self, a) return self.v[(a:argmax(3) * 9 % 4 + 1):to 'int32'] end,
	['a single index'] = function(self, a) return a[{{}, {}, self.i:view(5)[2]}] end,
	['tuples that are computed'] = function(_, a) return a:gathernd(tensor.stack({a:argmax(2), a:argmin(2)}, {axis=3})['::1, ::1, 1:1'], {batch=1}) end,
	['products of bytes wrap'] = function(self, a) return (a * 99):to('int8'):scatter(3, self.i:expand(a:size(1), 5, 5), 7, {reduce='mul'}) end,
	['rows are assigned'] = function(self, a) local y = a * 1 y[{{}, {}, self.i:view(5)}] = self.v:narrow(1, 1, 1) return y end,
	['slices by a mask'] = function(_, a) local y = a * 1 y[a:narrow(3, 1, 1):squeeze(3):gt(0)] = 4 return y end,
	onehot = function(_, a) return a:argmax(2):onehot(7) end, ['onehot of floats'] = function(_, a) return a:argmax(2):onehot(5, {dtype='float32'}) end,
	['onehot with values'] = function(_, a) return (a:argmax(2) + 2):onehot(5, {dtype='float32', on=2.5, off=-1, foreign=true}) end,
	['onehot of bytes'] = function(_, a) return a:argmax(2):to('uint8'):onehot(5, {dtype='int8'}) end,
	mask = function(_, a) local y = a * 2 y[y:lt(0.1)] = 0.1 return y end,
	['mask by a column'] = function(self, a) local y = a * 1 y[y:gt(self.v)] = 3 return y end,
}, x, parts)
it('numbers that are none of a place', function() -- given as an input: an error in Quoll
	local g = graph.trace(nn.module(function(_, a, i) return {a:gather(2, i), i:onehot(3, {dtype='int8'}), a:scatter(2, i, 5)} end, {}),
		{tensor {{1, 2, 3}}, tensor {{1, 2, 3}, dtype='int64'}})
	local folder = os.tmpname()
	os.remove(folder)
	g:export {dir=folder, name='net', samples={tensor {{1, 2, 3}}, tensor {{1, 2, 3}, dtype='int64'}}}
	local f = io.open(folder .. '/in', 'wb')
	f:write(string.pack('<fffi8i8i8', 1, 2, 3, 9, -4, math.mininteger)):close()
	assert(os.execute(("cd %s && make -s net CFLAGS='-O1 -fsanitize=undefined,address -fno-sanitize-recover=all' && ./net --run < in > out"):format(folder)))
	assert(io.open(folder .. '/out', 'rb'):read 'a' == string.pack('<fff', 0, 0, 0) .. ('\0'):rep(9) .. string.pack('<fff', 1, 2, 3))
	os.execute('rm -r ' .. folder)
end)
it('onehot wants the number of classes', function()
	local g = exported.of(function(_, a) return a:argmax(2):onehot() end, tensor.ones(2, 1, 1))
	print(pcall(g.export, g, {dir='/proc/none/x'}))  --> false ...n: wanted the number of classes, got nothing
end)
