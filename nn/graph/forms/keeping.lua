-- SPDX-License-Identifier: MIT
-- Ops whose result keeps the input's scale: ops that move elements, and ops that only compare them. With one scale
-- for the whole tensor, quantizing commutes with them, bit for bit: rounding is monotone, and 0.0 has the code of the
-- zero point.
-- Whether a pad has a border of one value, which codes must have; else it is of elements.
local function constant(node) return (node.attrs.mode or 'constant') == 'constant' end

-- A resize that mixes pixels has a scale of its own.
local SUMS = {ops = {'resize'}, inputs = {1}, weights = {}, gives = 'codes', needs = true}

return {
	{ops = {'relu', 'maxpool2d'}, inputs = {1}, weights = {}, gives = 'same', keeps = function(spec) return spec.monotone and spec.zero_code end},
	{ops = {'view', 'reshape', 't', 'transpose', 'permute', 'narrow', 'slice', 'select', 'expand', 'squeeze', 'unsqueeze',
		'contiguous'}, inputs = {1}, weights = {}, gives = 'same', moves = true},
	{ops = {'flip', 'roll', 'gather', 'gathernd', 'indexselect', 'repeatinterleave', 'depthtospace', 'spacetodepth'}, inputs = {1}, weights = {},
		gives = 'same', moves = true, keeps = function(spec, node) return not (spec.axis or spec.block) or node.results[1].spec ~= nil end},
	{ops = {'pad'}, inputs = {1}, weights = {}, gives = 'same', moves = true,
		keeps = function(spec, node)
			if not constant(node) then return not (spec.axis or spec.block) end
			return spec.affine and quant.dtype(spec.dtype).bits >= 8
		end,
		fits = function(node) return not constant(node) or node.attrs.value == node.attrs.value, 'a border that is a number' end},
	{ops = {'resize'}, inputs = {1}, weights = {}, gives = 'same', keeps = function(spec, node)
		return node.attrs.mode == 'nearest' and not spec.block and (spec.axis or 0) <= #node.results[1].shape - 2
	end,
		of = function(node) return node.attrs.mode ~= 'nearest' and SUMS or nil end},
}
