-- SPDX-License-Identifier: MIT
-- labels: quick noproducts
-- Scales that are found and codes that are made run by run (quant/ranges/fit_runs.c) are those of the other layouts of the same
-- scales: of columns, and of blocks along the first axis, which are found in a pass of their own.
local function across(q) -- scales, zero points, minimums and codes of a transposed quantized tensor
	local p, list = q:qparams(), {}
	for _, name in ipairs {'scale', 'zero_point', 'shift'} do
		local t = p[name]
		if t and type(t) ~= 'number' then list[name] = t:dim() == 2 and t:t():contiguous() or t end
	end
	list.codes = q:codes():to('int32'):t():contiguous()
	return list, p
end

local function same(x, along, columns, what)
	local q, want, p = x:quantize(along), across(x:t():contiguous():quantize(columns))
	local mine = q:qparams()
	for _, name in ipairs {'scale', 'zero_point', 'shift'} do
		if want[name] then
			assert(mine[name]:dtype() == want[name]:dtype(), what .. name .. mine[name]:dtype())
			assert(mine[name]:to('float64'):eq(want[name]:to 'float64'):all():item(), what .. name)
		end
	end
	assert(q:codes():to('int32'):eq(want.codes):all():item(), what .. 'codes')
	assert(mine.nan == p.nan and mine.inf == p.inf, what)
end

local SPECS = {'int8', 'uint8', 'int4', 'uint4', 'int3', 'int2', 'int16', 'uint16', 'int6'}
local function values(rows, columns, kind)
	local x = tensor.randn(rows, columns)
	if kind == 'far' then x = x * 3e-9 elseif kind == 'huge' then x = x * 1e36 elseif kind == 'up' then x = x:abs() + 5 end
	if kind == 'holes' then
		x[{1, {}}] = 0
		x[{2, {}}] = 0/0
		x[{3, 1}], x[{3, columns}], x[{rows, 2}] = 1/0, -1/0, 0/0
		x[{4, {}}] = x[{4, {}}]:abs() * -1
	end
	return x
end

it('rows: of any length, with holes, near the ends of float32', function()
	tensor.seed(3)
	for _, kind in ipairs {'plain', 'holes', 'far', 'huge', 'up'} do
		for _, columns in ipairs {2, 17, 64, 129, 5000} do
			local x = values(9, columns, kind)
			for _, dtype in ipairs(SPECS) do
				for _, more in ipairs {{}, {scheme = 'asymmetric'}, {scheme = 'symmetric'}} do
					local a, b = {dtype = dtype, axis = 1, scheme = more.scheme}, {dtype = dtype, axis = 2, scheme = more.scheme}
					same(x, a, b, ('%s %d %s %s '):format(kind, columns, dtype, more.scheme))
				end
			end
		end
	end
end)

it('blocks: whole vectors and others, short ones at the end, float16 scales and float32 ones', function()
	tensor.seed(4)
	for _, kind in ipairs {'plain', 'holes', 'far', 'huge', 'up'} do
		for _, size in ipairs {{32, 64}, {32, 100}, {16, 48}, {24, 72}, {64, 4200}, {5, 33}, {512, 1024}, {1024, 2500}} do
			local x = values(5, size[2], kind)
			for _, dtype in ipairs {'int8', 'uint8', 'int4', 'int3', 'int16'} do
				for _, more in ipairs {{}, {scheme = 'asymmetric'}, {scheme = 'symmetric'}, {scheme = 'minimum'}} do
					if more.scheme ~= 'minimum' or dtype:find 'int[84]' then
						local name = more.scheme == 'minimum' and (dtype:find 'u' and dtype or 'u' .. dtype) or dtype
						local a = {dtype = name, axis = 2, block = size[1], scheme = more.scheme}
						local b = {dtype = name, axis = 1, block = size[1], scheme = more.scheme}
						same(x, a, b, ('%s %d of %d %s %s '):format(kind, size[1], size[2], name, more.scheme))
					end
				end
			end
		end
	end
end)

it('formats with tables and float32 scales', function()
	tensor.seed(7)
	for _, kind in ipairs {'plain', 'holes', 'far', 'huge'} do
		local x = values(6, 640, kind)
		for _, name in ipairs {'nf4', 'af4', 'fp8_e4m3', 'fp6_e2m3', 'fp4_e2m1'} do
			local block = quant.spec(name).block
			if not block or block == 0 then same(x, name .. '/1', name .. '/2', kind .. name) end
			same(x, name .. '/2:64', name .. '/1:64', kind .. name .. ' in blocks ')
		end
	end
end)

it('decodes blocks: the same as with a scale per element', function()
	tensor.seed(5)
	for _, size in ipairs {{32, 96}, {64, 4200}, {512, 1536}, {32, 100}, {24, 72}} do
		local x = tensor.randn(7, size[2])
		for _, dtype in ipairs {'int8', 'uint8', 'int4', 'uint3', 'int16'} do
			local q = x:quantize {dtype = dtype, axis = 2, block = size[1]}
			local p = q:qparams()
			local scale = p.scale:to 'float32':unsqueeze(3):expand(7, p.scale:size(2), size[1]):reshape(7, -1):narrow(2, 1, size[2])
			local code = q:codes():to 'float32'
			if p.zero_point and type(p.zero_point) ~= 'number' then
				code = code - p.zero_point:to 'float32':unsqueeze(3):expand(7, p.scale:size(2), size[1]):reshape(7, -1):narrow(2, 1, size[2])
			end
			assert(q:dequantize():eq(code * scale):all():item(), dtype .. size[1])
		end
	end
end)

it('signs: at any place of a byte', function()
	for _, n in ipairs {1, 7, 8, 9, 64, 100, 4100} do
		local x = tensor.randn(3, n)
		x[{1, 1}], x[{2, n}] = 0/0, -0.0
		for _, spec in ipairs {'binary', 'binary/1', 'binary:8', 'binary:12', 'binary:64'} do
			local q = x:quantize(spec)
			assert(q:codes():to('float32'):eq(tensor.where(x:lt(0), -1, 1):to 'float32'):all():item(), spec .. n)
			local back = q:dequantize()
			assert(back:lt(0):eq(x:lt(0)):all():item(), spec .. n)
		end
	end
end)

it('means of magnitudes: of each row and block as of that part alone', function()
	tensor.seed(6)
	for _, kind in ipairs {'plain', 'holes', 'far', 'huge'} do
		for _, columns in ipairs {3, 64, 5000} do
			local x = values(6, columns, kind)
			local scale = x:quantize('binary/1'):qparams().scale
			for r = 1, 6 do assert(scale[r]:item() == x[r]:quantize('binary'):qparams().scale:item(), kind .. columns) end
			for _, block in ipairs {32, 20} do
				local q = x:quantize('binary:' .. block)
				local found = q:qparams().scale
				for r = 1, 6 do
					for b = 1, found:size(2) do
						local from = (b - 1) * block + 1
						local part = x[r]:narrow(1, from, math.min(block, columns - from + 1))
						local want = part:quantize('binary'):qparams().scale:to(found:dtype()):to 'float32'
						assert(found[{r, b}]:to('float32'):item() == want:item(), kind .. columns .. ' ' .. block)
					end
				end
				assert(kind ~= 'far' or found:dtype() == 'float32', 'too small for float16')
			end
		end
	end
end)
