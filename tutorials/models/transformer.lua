-- SPDX-License-Identifier: MIT
-- A Transformer for the characters of tiny Shakespeare: model = dofile 'models/transformer.lua':load 'transformer.safetensors'
return nn.Transformer {vocab=65, d=128, heads=4, layers=4, ff=512, context=128, causal=true, dropout=0.1}
