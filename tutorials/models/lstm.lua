-- SPDX-License-Identifier: MIT
-- A word-level LSTM for Penn Treebank, of the size of Zaremba's small configuration, with the embedding shared by the last layer:
-- model = dofile 'models/lstm.lua':load 'lstm.safetensors'
local size, vocab = 200, 10000
local model = nn.Sequential {nn.Embedding(vocab, size), nn.Dropout(0.2), nn.LSTM(size, size, {layers=2, dropout=0.2}), nn.Dropout(0.2),
	nn.Linear(size, vocab)}
tensor.nograd(function() model.embedding1.weight:mul_(0.1) end)
model.linear1.weight = model.embedding1.weight
return model
