-- SPDX-License-Identifier: MIT
-- Ops whose result keeps the input's scale: ops that move elements, and ops that only compare them. With one scale
-- for the whole tensor, quantizing commutes with them, bit for bit: rounding is monotone, and 0.0 has the code of the
-- zero point.
return {
	{ops = {'relu', 'maxpool2d'}, inputs = {1}, weights = {}, gives = 'same', keeps = function(spec) return spec.monotone and spec.zero_code end},
	{ops = {'view', 'reshape', 't', 'transpose', 'permute', 'narrow', 'select', 'expand', 'squeeze', 'unsqueeze',
		'contiguous'}, inputs = {1}, weights = {}, gives = 'same'},
	{ops = {'pad'}, inputs = {1}, weights = {}, gives = 'same', keeps = function(spec) return spec.affine and quant.dtype(spec.dtype).bits >= 8 end,
		fits = function(node) return (node.attrs.value or 0) == 0, 'a border of 0' end},
}
