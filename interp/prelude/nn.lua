-- SPDX-License-Identifier: MIT
-- nn: networks. The ops of nn/ops.def are in the table already.
local nn, internal = ...
local base = internal.import 'base'
local doc = base.doc

doc {name = 'nn', kind = 'module', usage = 'nn.mse(y, target)',
	text = [[Losses, and other functions that networks are made of.]]}
