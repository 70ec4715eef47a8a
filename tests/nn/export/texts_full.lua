-- SPDX-License-Identifier: MIT
-- labels: full
-- The text models of the tutorials in exported C, 1000 random inputs through each. The integer products of the LSTM, and its cells,
-- are exact; a Transformer quantizes floats that are not (attention, norms): now and then a code falls to the other side.
-- The weights are in a file, as millions of them take the C compiler longer than all else.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(23)
local words = tensor.randint {1000, 2, low=1, high=10000}:to 'int32'
exported.modes('lstm', words, {{'dynamic', 1000, {weight='int8/1'}}, {'weight_only', 100, {weight='int4:32'}}, {'static', 100}, {'float', 50}}, {blob=true})
local letters = tensor.randint {1000, 16, low=1, high=65}:to 'int32'
exported.modes('transformer', letters, {{'weight_only', 1000, {weight='int4:32'}}, {'float', 100}, {'dynamic', 100, {tolerance=2e-2}}}, {blob=true})
