-- SPDX-License-Identifier: MIT
-- Help on the methods of post-training quantization: the page `methods`, written from nn/quantize/methods.def and the descriptors.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local method = internal.import 'nn/quantize/method'

local WIDTH, NAME = 78, 13

local DECIDES = {model = 'changes the model first', block = 'changes what the layers of a block share', ranges = 'ranges of the codes', codes = 'codes',
	biases = 'biases, after the codes'}
local READS = {nothing = 'no data', moments = 'second moments of the inputs', inputs = 'inputs', gradients = 'gradients'}

-- Lines of a text with `lead` before the first.
local function hung(lead, text)
	local lines = {}
	base.wrap(lines, (text:gsub('%s+', ' ')), (' '):rep(#lead), WIDTH)
	lines[1] = lead .. lines[1]:sub(#lead + 1)
	return table.concat(lines, '\n')
end

local function about(name)
	local m = method.find(name)
	local list = {hung(('  %-' .. NAME .. 's'):format(name), ('%s; reads %s'):format(DECIDES[m.phase], READS[m.needs])), hung((' '):rep(NAME + 2), m.text)}
	for _, o in ipairs(m.options or {}) do list[#list + 1] = hung(('%s%s='):format((' '):rep(NAME + 2), o[1]), ('%s (%s)'):format(o[3], o[2])) end
	return table.concat(list, '\n')
end

-- What a line of advice names must exist.
local ADVICE = {
	{{'rtn'}, '8 bits', "no method: rounding loses next to nothing, and others win nothing"},
	{{'gptq'}, '4 bits', "{'gptq', act=true}, for most models the best for its time; with one scale a row after 'mse'"},
	{{'mse', 'hqq'}, 'no data', "'mse'; 'hqq' for formats with a minimum (int4:32+min)"},
	{{'imatrix'}, 'no time', "'imatrix': one pass over the data, then rounding"},
	{{'awq'}, 'language models', "{'awq', {'gptq', act=true}} where norms or layers before others take their factors"},
	{{'biascorrect'}, 'convolutions', "'biascorrect' last: few weights an output shift its mean"},
	{{'adaround', 'brecq'}, '3 bits, images', "'adaround' or 'brecq'; minutes"},
	{{'autoround'}, '3 bits, text', "'autoround'; minutes"},
	{{'smoothquant'}, 'outliers', "'smoothquant' or 'rotate' before codes of activations"},
}

local function advice()
	local list = {}
	for _, line in ipairs(ADVICE) do
		local all = true
		for _, name in ipairs(line[1]) do all = all and method.find(name) ~= nil end
		if all then list[#list + 1] = hung(('  %-17s'):format(line[2]), line[3]) end
	end
	return table.concat(list, '\n')
end

local function methods()
	local list = {}
	for i, name in ipairs(method.names) do list[i] = about(name) end
	return table.concat(list, '\n\n')
end

base.doc {name = 'methods', kind = 'concept', text = ([[Methods of post-training quantization choose the codes of weights so that the results of a model change
least. m:quantize{method=, data=} runs a name, {name, option=}, or a list of them: a chain. One method of a chain decides codes ('rtn', if none
does); methods that change several layers or ranges are before it, those of biases after it. A rule may have method= of its own.

The calibration data, batches of inputs without labels, goes through the model block by block, and each block gets what the quantized
blocks before it give. Codes that are worse than rounded ones for the outputs of their own layer are not taken, nor a block that is worse with
changes that several layers share; the column `why` of the report says so. Without data codes are judged by the errors of the weights.

When to use which:

ADVICE

quant.methods(m, {…}, {data=, test=, metric=}) tries many and ranks them; sizes={2, 8, 32} shows how much data is enough.

What they cost: methods without data take the time of rounding. Second moments take one pass over a block's data for each value that
layers read, and K x K float64 numbers for a layer with K inputs. Gradients take a forward and a backward pass of the block for each
step. Between two blocks the values of the float model and of the quantized one are kept; memory= bounds what of them is in memory, and file=
makes a run resumable.

When they do not help: at 8 bits there is little to win back. With fewer rows of inputs than inputs of a layer its moments say
nothing about some directions, so more batches come before a better method. Data unlike what the model will see makes codes good for
the wrong inputs. Least-squares ranges clip the largest weights, which helps with one scale a row and may harm where these matter
most; try with and without. A layer that is not multiplied with columns of its input, as an embedding, is rounded.

The methods:

METHODS]]):gsub('ADVICE', function() return advice() end):gsub('METHODS', function() return methods() end),
	example = [[tensor.seed(1)
m = nn.Sequential{nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)}
x = tensor.randn(200, 4):matmul(tensor.randn(4, 16))
q, r = m:quantize{mode='weight_only', weight='int4:16', method={'mse', 'gptq'}, data={{x}}, log=false}
print(r[1].method, r[1].error > r[1].rtn)  --> mse gptq true]]}

return true
