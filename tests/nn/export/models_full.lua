-- SPDX-License-Identifier: MIT
-- labels: full
-- The image models of the tutorials in exported C, 1000 random inputs through each: integers exactly. The weights of the large one are in a
-- file, as millions of them take the C compiler longer than all else.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(23)
local digits, images = tensor.rand(1000, 1, 28, 28), tensor.randn(1000, 3, 32, 32)
for _, name in ipairs {'mlp', 'lenet'} do
	exported.modes(name, digits, {{'float', 1000}, {'static', 1000}, {'static', 1000, {rounding='single'}}, {'static', 1000, {rounding='double'}},
		{'dynamic', 1000}, {'weight_only', 1000, {weight='int4:32'}}, {'weight_only', 1000, {weight='mxfp4'}}, {'weight_only', 1000, {weight='nf4'}}})
end
exported.modes('resnet9', images, {{'static', 1000}, {'static', 100, {rounding='double'}}, {'static', 50, {weight='int4/1'}}, {'dynamic', 100},
	{'float', 50}}, {blob=true})
