-- SPDX-License-Identifier: MIT
-- Queries of passes about codes: whether a value is quantized, with which parameters, and whether two specs are equal.
local _, internal = ...
local core = internal.import 'nn/graph/core'
local like = internal.import 'quant/like'
local ops = internal.import 'nn/graph/ops'
local codes = {CONVERSIONS = {quantize = true, dequantize = true, requantize = true}}

-- Scale and zero point as numbers; nil if the spec has none or one per channel.
function codes.params(spec)
	local scale, zero = internal.spec_params(spec)
	return scale, zero or 0
end

-- Whether the spec has a single scale that is already known.
function codes.fixed(spec) return spec.scheme ~= nil and not spec.axis and not spec.block and (codes.params(spec)) ~= nil end

-- A string that is equal only for equal specs. Parameters that are not known yet are found at each call and do not count.
function codes.key(spec)
	local scale, zero = codes.params(spec)
	return ('%s|%s|%s|%s|%s'):format(tostring(spec), spec.bits, spec.scheme, scale and ('%a'):format(scale) or 'found', zero)
end

-- Whether the value of an edge is quantized, in an edit whose types are not computed yet.
function codes.are_codes(e, ref)
	local node = e.nodes[core.split(ref)]
	if node.op == 'quantize' or node.op == 'requantize' then return node.attrs.spec.scheme ~= nil end
	if node.op == 'dequantize' then return false end
	if node.attrs.out then return node.attrs.out.scheme ~= nil end
	local _, at = core.split(ref)
	if ops.keeps_codes(node) and node.op ~= 'const' and at == 1 then return codes.are_codes(e, node.inputs[1]) end
	return e:result_of(ref).spec ~= nil and (node.op == 'const' or node.op == 'input' or node.traced == true)
end

-- The parameters of an edge's codes, if known before running: a spec.
function codes.spec_of(e, ref)
	local node = e.nodes[core.split(ref)]
	if node.op == 'quantize' or node.op == 'requantize' then return node.attrs.spec end
	if node.attrs.out then return node.attrs.out end
	if ops.keeps_codes(node) and type(node.inputs[1]) == 'string' then return codes.spec_of(e, node.inputs[1]) end
end

function codes.same_params(e, ref, spec)
	local has = codes.spec_of(e, ref)
	if not has or not codes.fixed(has) or not codes.fixed(spec) then return false end
	local s1, z1 = codes.params(has)
	local s2, z2 = codes.params(spec)
	return like.same(has, spec) and s1 == s2 and z1 == z2
end

return codes
