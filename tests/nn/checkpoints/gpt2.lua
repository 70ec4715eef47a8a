-- SPDX-License-Identifier: MIT
-- GPT-2: logits of transformers 5.24 (scripts/goldens_transformers.py), from folders with and without a prefix, and from a .gguf file.
local tools = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checkpoints.lua')
local GOLDEN = {-0.34307435, -0.40794036, -0.26149929, 0.16722754, 0.41396341, -255.41132}
local CONFIG = [[{"model_type": "gpt2", "vocab_size": 20, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32, "n_inner": null,
	"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5%s}]]

local function parameters()
	local shapes = {{'transformer.wte.weight', 20, 16}, {'transformer.wpe.weight', 32, 16}, {'transformer.ln_f.weight', 16}, {'transformer.ln_f.bias', 16}}
	for i = 0, 1 do
		for _, row in ipairs {{'ln_1', 16}, {'ln_2', 16}, {'attn.c_attn', 16, 48}, {'attn.c_proj', 16, 16}, {'mlp.c_fc', 16, 64}, {'mlp.c_proj', 64, 16}} do
			local name = ('transformer.h.%d.%s.'):format(i, row[1])
			shapes[#shapes + 1] = {name .. 'weight', table.unpack(row, 2)}
			shapes[#shapes + 1] = {name .. 'bias', row[#row]}
		end
	end
	return tools.parameters(shapes)
end

it('the names of transformers, saved back', function()
	local folder, to = tools.folder(CONFIG:format '', parameters()), os.tmpname()
	local m = nn.load(folder)
	tools.check(m, GOLDEN)
	os.remove(to)
	m:save(to .. '/')
	local a, b = tensor.load(folder .. '/model.safetensors'), tensor.load(to .. '/model.safetensors')
	assert(#a == #b)
	for name, x in pairs(a) do assert(b[name]:eq(x):all():item(), name) end
end)

it('the names of the published files, with masks', function()
	local t = {['h.0.attn.bias'] = tensor.ones(1, 1, 32, 32), ['h.1.attn.masked_bias'] = tensor.ones(1)}
	for name, x in pairs(parameters()) do t[name:gsub('^transformer%.', '')] = x end
	tools.check(nn.load(tools.folder(CONFIG:format '', t)), GOLDEN)
end)

local NAMES = {wte = 'token_embd', wpe = 'position_embd', ln_f = 'output_norm', ln_1 = 'attn_norm', ln_2 = 'ffn_norm', ['attn.c_attn'] = 'attn_qkv',
	['attn.c_proj'] = 'attn_output', ['mlp.c_fc'] = 'ffn_up', ['mlp.c_proj'] = 'ffn_down'}

it('.gguf', function()
	local file, t = os.tmpname() .. '.gguf', {}
	for name, x in pairs(parameters()) do
		local block, stem, field = name:match '^transformer%.h%.(%d+)%.(.*)%.(%a+)$'
		if not block then stem, field = name:match '^transformer%.(.*)%.(%a+)$' end
		if stem:find '%.' and field == 'weight' then x = x:t():contiguous() end
		t[(block and ('blk.%s.'):format(block) or '') .. NAMES[stem] .. '.' .. field] = x
	end
	tensor.save(file, t, {metadata = {['general.architecture'] = 'gpt2', ['gpt2.context_length'] = 32, ['gpt2.embedding_length'] = 16, ['gpt2.block_count'] = 2,
		['gpt2.feed_forward_length'] = 64, ['gpt2.attention.head_count'] = 4, ['gpt2.attention.layer_norm_epsilon'] = 1e-5}})
	tools.check(nn.load(file), GOLDEN)
end)

it('refuses other forms of attention', function()
	for key, value in pairs {scale_attn_weights = 'false', scale_attn_by_inverse_layer_idx = 'true'} do
		local ok, message = pcall(nn.load, tools.folder(CONFIG:format((', "%s": %s'):format(key, value)), parameters()))
		assert(not ok and message:find(key .. ': wanted', 1, true), message)
	end
end)
