-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Every op x every dtype x scheme: an op on a quantized operand is either in the list of those that stay integer, and
-- takes that path, or gives exactly the result of the op on the dequantized operand through the fallback, and the ledger
-- says so. An op that is in neither list fails the test: a new op must be put somewhere.
local specs = {'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16', 'binary', 'int8/1', 'int8/2', 'uint8/1', 'int4:4', 'int8/1:2',
	{dtype = 'int8', scheme = 'asymmetric'}, {dtype = 'uint8', scheme = 'symmetric'}, {dtype = 'int8', scheme = 'log'},
	{dtype = 'int4', scheme = 'log'}, {bits = 3}}

-- Must not fall back (with these specs); their results are compared in the tests of their own files.
local integer = {convtranspose2d = true, maxpool2d = true, avgpool2d = true, pad = true, conv2d = true, relu = true, max = true, min = true, aminmax = true, argmax = true, argmin = true, matmul = true, linear = true,
	flip = true, roll = true, gather = true, gathernd = true, indexselect = true, repeatinterleave = true}
-- Of these, what has no integer version all the same.
local function lacking(op, spec)
	if op == 'maxpool2d' then return spec.bits == 1 end
	if op == 'avgpool2d' then return spec.bits == 1 or spec.scheme == 'log' end
	if op == 'pad' then return spec.bits < 8 end
	return (op == 'conv2d' or op == 'convtranspose2d') and spec.bits > 8
end
-- A second operand, or arguments, where an op wants them. Everything else is called with the tensor alone (and itself
-- as second operand).
local x = tensor{{0.5, -1.25, 3, 0.75}, {2, -0.5, 1.5, -2.5}, {-3, 0.25, 0.125, 1}, {1, 2, -1, 0.5}}
local mask = tensor{{true, false, true, true}, {false, true, false, true}, {true, true, true, false}, {false, false, true, true}}
local positions = tensor({{1, 2, 3, 4}, {4, 3, 2, 1}, {1, 1, 2, 2}, {2, 3, 4, 1}, dtype = 'int64'})
local ids, tuples = tensor{2, 4, 1, dtype = 'int64'}, tensor({{1, 2}, {3, 4}, dtype = 'int64'})
local definite = tensor{{8, 1, 0.5, -1}, {1, 7, 2, 0.5}, {0.5, 2, 8, -1}, {-1, 0.5, -1, 6}}
local arguments = {
	gptq = 'skip', cholesky = 'definite', inversefactor = 'definite', choleskyinverse = 'definite',
	clamp = {-1, 1}, leakyrelu = {0.1}, maskedselect = {mask}, maskedassign = {mask, 2.5}, quantile = {0.25}, topk = {2},
	gather = {2, positions}, scatter = {2, positions, x}, tile = {2, 1}, pad = {1}, resize = {3}, flip = {1}, norm = {2},
	cumsum = {{axis = 1}}, conv2d = 'images', convtranspose2d = 'images', maxpool2d = 'images', avgpool2d = 'images', fake = {'int4'},
	embedding = 'skip', lsq = 'skip', -- a table of rows and a scale: see their own tests
	roll = {1}, repeatinterleave = {2}, bincount = 'skip', indexselect = {2, ids}, indexassign = {2, ids, 2.5}, gathernd = {tuples}, scatternd = {tuples, tensor{5, 6}},
	dot = 'vectors', einsum = 'skip', onehot = 'skip', where = 'skip',
}
-- Wants integers or bools by its nature: a decoded operand is refused, and so is a quantized one.
local refuses = {band = true, bor = true, bxor = true, shl = true, shr = true, bnot = true, onehot = true, maskedassign = false}
-- Wants a definite matrix: codes of few bits may be none.
refuses.cholesky, refuses.inversefactor = true, true

local function equal(a, b)
	if type(a) ~= 'userdata' then return a == b end
	if a:dim() ~= b:dim() then return false end
	local s, t = {a:size()}, {b:size()}
	for i = 1, #s do if s[i] ~= t[i] then return false end end
	if a:nelem() == 0 then return true end
	local u, v = a:dequantize():reshape(a:nelem()):totable(), b:dequantize():reshape(b:nelem()):totable()
	for i = 1, #u do
		if u[i] ~= v[i] and not (u[i] ~= u[i] and v[i] ~= v[i]) then return false end
	end
	return true
end

local function call(op, first, second)
	local f = op.method and first[op.name] or tensor[op.name]
	local given = arguments[op.name]
	if given == 'vectors' then return f(first[1], second[1]) end
	if given == 'images' then
		local image = first:view(1, 1, 4, 4)
		return f(image, op.arity_min == 2 and second:view(1, 1, 4, 4) or 2)
	end
	if op.list_in then return f{first, second} end
	if given == 'definite' then return f(first) end
	if given then return f(first, table.unpack(given)) end
	if op.arity_min >= 2 then return f(first, second) end
	return f(first)
end

local seen = 0
describe('fallback', function()
	for _, op in ipairs(tensor.ops()) do
		local skip = op.view or op.native or op.arity_max == 0 or arguments[op.name] == 'skip'
		if not skip then
			it('of ' .. op.name, function()
				for _, spec in ipairs(specs) do
					if op.name == 'dot' and spec == 'int8/1:2' then goto continue end -- a row would cut its blocks
					if arguments[op.name] == 'images' and (quant.spec(spec).axis or quant.spec(spec).block) then
						goto continue -- such a view is refused
					end
					local name = op.name .. ' ' .. tostring(quant.spec(spec))
					local q = (arguments[op.name] == 'definite' and definite or x):quantize(spec)
					local d = q:dequantize()
					quant.log 'reset'
					local ok, got = pcall(call, op, q, q)
					local fine, want = pcall(call, op, d, d)
					assert(ok == fine, name .. ': ' .. tostring(got) .. ' / ' .. tostring(want))
					if ok then
						local fell = false
						for _, row in ipairs(quant.ledger()) do fell = fell or (row.path == 'fallback' and row.op == op.name) end
						if integer[op.name] and not lacking(op.name, quant.spec(spec)) and quant.spec(spec).block == nil and quant.spec(spec).scheme ~= 'log' and
							quant.spec(spec).axis == nil and quant.spec(spec).dtype ~= 'binary' then
							assert(not fell, name .. ' fell back')
						elseif not integer[op.name] then
							assert(fell, name .. ' is in no list')
							assert(equal(got, want), name .. ' differs')
							assert(got:origin().reason, name .. ' has no reason')
						else
							local a, b = got:dequantize(), want:dequantize()
							if fell then assert(equal(a, b), name) end
						end
						seen = seen + 1
					else
						assert(refuses[op.name], name .. ' is refused: ' .. tostring(got))
					end
					::continue::
				end
			end)
		end
	end
	it('runs through the whole table', function() assert(seen > 17 * 20, seen) end)
end)

describe('quant.fallback', function()
	it("'error' refuses, naming op and dtypes", function()
		assert(quant.fallback 'error' == 'silent')
		local ok, message = pcall(function() return x:quantize 'int8' + 1 end)
		quant.fallback 'silent'
		assert(not ok and message:find "add: wanted an integer kernel for int8q x int64", message)
	end)
	it('refuses other words', function() assert(not pcall(quant.fallback, 'loud')) end)
	it('leaves integer paths alone', function()
		quant.fallback 'error'
		local q = x:quantize 'int8'
		local p = q:matmul(q):origin().path
		quant.fallback 'silent'
		assert(p == 'int8')
	end)
end)

describe('the ledger', function()
	it('counts, and says why', function()
		quant.log 'reset'
		local q = x:quantize 'int8/2'
		for _ = 1, 3 do q:matmul(q) end
		local found
		for _, row in ipairs(quant.ledger()) do if row.op == 'matmul' then found = row end end
		assert(found.count == 3 and found.path == 'fallback' and found.reason:find 'summed axis')
		assert(q:matmul(q):explain():find 'fallback' and q:matmul(q):explain():find 'summed axis')
		quant.log 'reset'
		assert(#quant.ledger() == 0)
	end)
end)
