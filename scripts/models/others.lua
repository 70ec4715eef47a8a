-- SPDX-License-Identifier: MIT
-- Section others: 20 exports of torchvision and transformers with random weights, by both of torch's exporters.
local _, judges = ...
local ask, folder = judges.ask, judges.folder

-- {name, exporter, opset}: named here before they were tried
local OTHERS = {{'resnet18', 'torchscript', 17}, {'mobilenet_v2', 'dynamo', 18}, {'mobilenet_v3_small', 'torchscript', 17},
	{'efficientnet_b0', 'torchscript', 17}, {'squeezenet1_1', 'dynamo', 20}, {'shufflenet_v2', 'torchscript', 17}, {'densenet121', 'torchscript', 13},
	{'regnet_y_400mf', 'dynamo', 18}, {'convnext_tiny', 'torchscript', 17}, {'googlenet', 'torchscript', 17}, {'vit_b_16', 'dynamo', 18},
	{'swin_t', 'torchscript', 17}, {'mnasnet0_5', 'dynamo', 18}, {'bert', 'dynamo', 18}, {'distilbert', 'torchscript', 17}, {'gpt2', 'dynamo', 20},
	{'llama', 'dynamo', 20}, {'qwen2', 'dynamo', 18}, {'roberta', 'dynamo', 18}, {'albert', 'torchscript', 17}}

local function section()
	local rows, right = {columns = {'model', 'nodes', 'load ms', 'error / largest output'}}, 0
	for _, m in ipairs(OTHERS) do
		local name = ('%s %s %d'):format(table.unpack(m))
		if ask('export', m[1], m[2], m[3], folder) then
			rows[#rows + 1] = judges.row_of(name, folder .. '/m.onnx', nil, folder .. '/m.npz')
			right = right + ((tonumber(rows[#rows][4]) or 1) <= 1e-4 and 1 or 0)
		else
			rows[#rows + 1] = {name, '-', '-', 'skipped: the export failed'}
		end
	end
	rows.note = ('%d of %d within 1e-4'):format(right, #OTHERS)
	return rows
end

return {needs = 'onnxruntime, torch, torchvision, transformers', run = section}
