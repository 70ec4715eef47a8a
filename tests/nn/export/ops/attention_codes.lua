-- SPDX-License-Identifier: MIT
-- labels: full
-- Attention of codes in exported C, bit for bit: both layouts, shared heads, causal, scales.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(45)
local x = tensor.randn(1000, 5, 24)
local function split(t, heads) return t:view(t:size(1), t:size(2), heads, t:size(3) // heads):transpose(2, 3) end
local INS = {{dtype='int8', scale=0.03, zero_point=5}, {dtype='uint8', scale=0.025, zero_point=128}, {dtype='int16', scale=2e-4}}
local OUTS = {{dtype='int8', scale=0.03}, {dtype='uint8', scale=0.02, zero_point=120}, {dtype='int16', scale=1e-4}}
local codes = {}
for i, o in ipairs {{heads=4}, {heads=4, causal=true}, {heads=2, scale=1.5}, {heads=3, scale=-0.2}} do
	local name = 'heads ' .. i
	for k = 1, 3 do
		codes[name .. ' ' .. INS[k].dtype] = function(_, a)
			return nn.attention(a:quantize(INS[k]), (a * 0.7):quantize(INS[1]), (a * a):quantize(INS[2]), {heads=o.heads, causal=o.causal, scale=o.scale,
				out=OUTS[k]})
		end
	end
end
codes['by head, shared'] = function(_, a)
	return nn.attention(split(a:quantize(INS[1]), 4), split(a:narrow(3, 1, 12):contiguous():quantize(INS[2]), 2),
		split(a:narrow(3, 13, 12):contiguous():quantize(INS[1]), 2), {causal=true, out=OUTS[1]})
end
local seen, lengths = tensor.randn(4, 5, 5):gt(-0.5), tensor {dtype='int32', 3}
for name, o in pairs {bool={mask=seen}, ['a row']={mask=tensor {1, 1, 0, 1, 0}:gt(0)}, causal={mask=seen, causal=true}, window={window=2}, ['causal window']={window=2, causal=true},
	added={mask=tensor.randn(5, 5) * 3}, turned={mask=tensor.randn(1, 4, 1, 5), scale=-0.2}, ['minus infinity']={mask=tensor {0, -math.huge, 0.5, -1e30, 2}, causal=true},
	['none seen']={mask=tensor {0, 0, 0, 0, 0}:gt(0)}} do
	for k = 1, 3 do
		codes[name .. ' ' .. INS[k].dtype] = function(_, a)
			return nn.attention(a:quantize(INS[k]), (a * 0.7):quantize(INS[1]), (a * a):quantize(INS[2]), {heads=4, mask=o.mask, window=o.window, causal=o.causal,
				scale=o.scale, out=OUTS[k]})
		end
	end
end
codes['keys after a length'] = function(_, a)
	local n = tensor.full {a:size(1), value=0, dtype='int32'} + lengths
	return nn.attention(a:quantize(INS[1]), a:quantize(INS[1]), a:quantize(INS[2]), {heads=4, lengths=n, out=OUTS[2]})
end
for i, o in ipairs {{}, {start=7, base=500}, {axis=2}} do
	for k = 1, 3 do
		codes[('rope %d %s'):format(i, INS[k].dtype)] = function(_, a)
			return nn.rope(a:view(a:size(1), 5, 3, 8):quantize(INS[k]), {start=o.start, base=o.base, axis=o.axis, out=OUTS[k]})
		end
	end
end
local cosine, sine = tensor.rand(5, 4) * 2 - 1, tensor.rand(5, 4)
for name, o in pairs {half={style='half'}, part={dims=4, start=2}, ['half part']={dims=6, style='half', base=300}, ['tables by half']={t=true, style='half'},
	tables={t=true, dims=4}} do
	for k = 1, 3 do
		codes[('rope %s %s'):format(name, INS[k].dtype)] = function(_, a)
			local q, options = a:view(a:size(1), 3, 5, 8):quantize(INS[k]), {style=o.style, dims=o.dims, start=o.start, base=o.base, out=OUTS[k]}
			return o.t and nn.rope(q, cosine, sine, options) or nn.rope(q, options)
		end
	end
end
exported.functions(codes, x)
