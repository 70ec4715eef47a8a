-- SPDX-License-Identifier: MIT
-- labels: full
-- sort, topk, median and quantile in exported C: ties as they stood, nan last.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local x = (tensor.randn(20, 6, 9) * 2):round()
x[{{1, 3}, 2, 4}], x[{2, {}, 1}], x[{4, 3}], x[{5, {2, 3}, 5}] = 0 / 0, 1 / 0, 0 / 0, -0.0
local list = {}
for _, axis in ipairs {2, 3} do
	for _, down in ipairs {false, true} do
		list[('sort %d %s'):format(axis, down)] = function(_, a) return (a:sort {axis=axis, descending=down}) end
		list[('places of sort %d %s'):format(axis, down)] = function(_, a) return select(2, a:sort {axis=axis, descending=down}) end
		for k = 0, 6, 2 do
			list[('topk %d %d %s'):format(k, axis, down)] = function(_, a) return (a:topk(k, {axis=axis, largest=down})) end
			list[('places of topk %d %d %s'):format(k, axis, down)] = function(_, a) return select(2, a:topk(k, {axis=axis, largest=down})) end
		end
	end
	list['median ' .. axis] = function(_, a) return a:median {axis=axis, keep=true} end
end
list['sort of bytes'] = function(_, a) return ((a * 20):to('uint8'):sort(2)) end
list['sort of bool'] = function(_, a) return (a:gt(0):sort(2)) end
list['places of codes'] = function(_, a) return select(2, a:quantize {dtype='int8', scale=0.5}:sort(2)) end
list['median of integers'] = function(_, a) return (a * 20):to('int64'):median {axis={2, 3}} end
list['quantile along axes apart'] = function(_, a) return a:view(-1, 2, 3, 9):quantile(0.77, {axis={2, 4}}) end
list['quantiles'] = function(self, a) return a:quantile(self.q, {axis=2}):transpose(1, 2) end
list['of one element'] = function(_, a) return (a:narrow(3, 1, 1):narrow(2, 1, 1):sort(2)):median {axis=2} end
for name in pairs(list) do if name:find 'topk 0' then list[name] = nil end end
exported.functions(list, x, {q=tensor {0, 1, 0.5, 0.123}})
exported.functions({['between infinities'] = function(_, a) return a:quantile(0.4, 2) end, ['long lines'] = function(_, a) return select(2, a:tile(1, 40):sort(2)) end},
	tensor {{1 / 0, -1 / 0, 3, 4}, {1 / 0, 1 / 0, 1 / 0, 2}, {-1 / 0, -1 / 0, -1 / 0, 5}, {3e38, -3e38, 3e38, -3e38}})
it('both results', function()
	local g = graph.trace(nn.module(function(_, a) local v, i = a:topk(2) return {v, i} end, {}), tensor.randn(1, 5))
	local folder = os.tmpname()
	os.remove(folder)
	g:export {dir=folder, name='net'}
	assert(os.execute(('make -s -C %s test >/dev/null'):format(folder)))
	os.execute('rm -r ' .. folder)
end)
