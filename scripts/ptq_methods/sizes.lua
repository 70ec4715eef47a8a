-- SPDX-License-Identifier: MIT
-- Section sizes: stories260K, int4:32, by the number of texts that methods learn from.
local _, tools = ...

return function()
	local m, texts = tools.stories()
	print(quant.methods(m, {'rtn', 'gptq', {'mse', {'gptq', act = true}}}, {data = tools.own_texts(m, 1, 32), test = texts, metric = 'perplexity', sizes = {2, 8, 32}, log = false}))
end
