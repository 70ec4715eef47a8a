-- SPDX-License-Identifier: MIT
-- Models of the tutorials in exported C; 1000 inputs to each in models_full.lua and texts_full.lua.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(23)
local x = tensor.rand(4, 1, 28, 28)
exported.modes('mlp', x, {{'static', 4, {rounding='single'}}, {'dynamic', 4}, {'weight_only', 4, {weight='int4:32'}}})
exported.modes('lenet', x, {{'static', 4, {weight='int4/1'}}})
