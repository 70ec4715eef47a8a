-- SPDX-License-Identifier: MIT
-- Names of PyTorch, NumPy and Python that are other names here: habits.answer(kind, name) is what errors about unknown names add,
-- or nil. `kind`: where the name was looked for. tests/interp/habits.lua checks that no name of the left is one of ours, and that
-- all of the right are.
local habits = {}

-- Methods and attributes of tensors: x.name, x:name().
local TENSOR = {
	T = 'x:t()', mT = 'x:transpose(-2, -1)', H = 'x:t()', absolute = 'x:abs()', allclose = 'x:error(y).max',
	amax = 'x:max(axis)', arccosh = 'x:acosh()', arcsinh = 'x:asinh()', arctan2 = 'y:atan2(x)', arctanh = 'x:atanh()', amin = 'x:min(axis)', argsort = 'values, indices = x:sort()',
	array_equal = 'x:eq(y):all()', astype = "x:to 'float16'", avg_pool2d = 'x:avgpool2d(size)',
	bfloat16 = "x:to 'bfloat16'", bmm = 'x:matmul(y)', bool = "x:to 'bool'", byte = "x:to 'uint8'",
	char = "x:to 'int8'", chunk = 'x:split(size)', clip = 'x:clamp(lo, hi)', copy = 'x:clone()',
	cpu = "x:to 'cpu'", cuda = "x:to with a device, see help 'gpu'", data = 'x:detach()',
	double = "x:to 'float64'", element_size = 'x:nbytes() / x:nelem()', equal = 'x:eq(y):all()',
	expand_as = 'x:expand(y:size())', flatten = 'x:reshape(-1)', float = "x:to 'float32'",
	floor_divide = 'x // y', half = "x:to 'float16'", hardshrink = 'x:shrink(lambda)', histc = 'plot.hist{x}',
	index_select = 'x:gather(axis, indices)', int = "x:to 'int32'", int_repr = 'x:codes()',
	is_contiguous = 'x:iscontiguous()', is_quantized = 'x:quantized()', isclose = 'x:error(y).max',
	layer_norm = 'x:layernorm(weight, bias)', leaky_relu = 'x:leakyrelu()',
	log_sigmoid = 'x:logsigmoid()', log_softmax = 'x:logsoftmax(axis)', logical_and = 'x & y', logical_not = '~x', logical_or = 'x | y',
	long = "x:to 'int64'", masked_fill = 'tensor.where(mask, value, x)', masked_fill_ = 'x[mask] = value',
	masked_select = 'x[mask]', max_pool2d = 'x:maxpool2d(size)', mm = 'x:matmul(y)', mv = 'x:matmul(y)',
	ndim = 'x:dim()', ndimension = 'x:dim()', negative = '-x', nelement = 'x:nelem()',
	new_zeros = 'tensor.zeros(x:size())', numel = 'x:nelem()', numpy = 'x:totable()', one_hot = 'x:onehot(n)',
	q_per_channel_scales = 'x:qparams().scale', q_scale = 'x:qparams().scale',
	q_zero_point = 'x:qparams().zero_point', qscheme = 'x:spec()', quantize_per_channel = "x:quantize 'int8/1'",
	quantize_per_tensor = "x:quantize 'int8'", ravel = 'x:reshape(-1)', remainder = 'x % y',
	reshape_as = 'x:reshape(y:size())', rms_norm = 'x:rmsnorm(weight)',
	rsub = 'y - x', shape = 'x:size()', short = "x:to 'int16'", sizes = 'x:size()', softshrink = 'x:shrink(lambda, lambda)', subtract = 'x - y',
	swapaxes = 'x:transpose(1, 2)', swish = 'x:silu()', swapdims = 'x:transpose(1, 2)', tensor_split = 'x:split(size)', thresholdedrelu = 'x:threshold(alpha)',
	tolist = 'x:totable()', true_divide = 'x / y', type = 'x:dtype()', type_as = 'x:to(y:dtype())',
	unbind = 'x:split(1)', view_as = 'x:view(y:size())', values = 'x:totable()', zero_ = 'x:fill_(0)',
}

-- Functions of tensor, torch and np.
local FUNCTIONS = {
	FloatTensor = 'tensor{1, 2}', LongTensor = "tensor{1, 2, dtype = 'int64'}", Tensor = 'tensor{1, 2}',
	array = 'tensor{1, 2}', as_tensor = 'tensor{1, 2}', asarray = 'tensor{1, 2}', concat = 'tensor.cat{x, y}',
	concatenate = 'tensor.cat{x, y}', cross_entropy = 'nn.crossentropy(y, target)',
	device = "x:to with a device, see help 'gpu'", dtype = "a dtype is a text: 'float32'",
	empty_like = 'tensor.empty(x:size())', enable_grad = 'tensor{1, 2, grad = true}',
	from_numpy = "tensor.load 'file.npy'", full_like = 'tensor.full{x:size(), value = v}',
	hstack = 'tensor.cat{x, y}', identity = 'tensor.eye(n)', inf = 'math.huge',
	inference_mode = 'tensor.nograd(f)', manual_seed = 'tensor.seed(1)', nan = '0 / 0', ndarray = 'tensor{1, 2}',
	no_grad = 'tensor.nograd(f)', normal = 'tensor.randn(2, 3)', ones_like = 'tensor.ones(x:size())',
	pi = 'math.pi', rand_like = 'tensor.rand(x:size())', randn_like = 'tensor.randn(x:size())',
	random = 'tensor.rand(2, 3)', set_num_threads = 'tensor.threads(n)', get_num_threads = 'tensor.threads()',
	set_printoptions = '%set precision 6', tensor = 'tensor{1, 2}', uniform = 'tensor.rand(2, 3)',
	vstack = 'tensor.cat{x, y}', zeros_like = 'tensor.zeros(x:size())',
}
for _, name in ipairs {'float16', 'float32', 'float64', 'bfloat16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool'} do
	FUNCTIONS[name] = ("a dtype is a text: '%s'"):format(name)
end

local NN = {
	BCELoss = 'nn.bce(y, target)',
	BCEWithLogitsLoss = 'nn.bcelogits(y, target)', BatchNorm1d = 'nn.BatchNorm2d(n) or nn.LayerNorm(n)',
	CrossEntropyLoss = 'nn.crossentropy(y, target)', Dropout2d = 'nn.Dropout(p)',
	F = 'nn.crossentropy, x:relu() and the like', GRUCell = 'nn.gru', Identity = 'nn.Sequential{}',
	LSTMCell = 'nn.lstm', HuberLoss = 'nn.huber(y, target)', KLDivLoss = 'nn.kldiv(y, target)', L1Loss = 'nn.l1(y, target)', MSELoss = 'nn.mse(y, target)',
	SmoothL1Loss = 'nn.smoothl1(y, target)', huber_loss = 'nn.huber(y, target)', kl_div = 'nn.kldiv(y, target)', l1_loss = 'nn.l1(y, target)',
	smooth_l1_loss = 'nn.smoothl1(y, target)',
	Module = 'nn.module(function(self, x) return x end, parts)',
	ModuleDict = 'nn.module(function(self, x) return x end, parts)', ModuleList = 'nn.Sequential{…}',
	MultiheadAttention = 'nn.Attention(n, heads)', Parameter = 'tensor{1, 2, grad = true}',
	TransformerDecoder = 'nn.Transformer', TransformerEncoder = 'nn.Encoder',
	TransformerEncoderLayer = 'nn.Transformer', ZeroPad2d = 'x:pad', binary_cross_entropy = 'nn.bce(y, target)',
	binary_cross_entropy_with_logits = 'nn.bcelogits(y, target)', cross_entropy = 'nn.crossentropy(y, target)',
	functional = 'nn.crossentropy, x:relu() and the like', gelu = 'x:gelu()',
	init = "tensor.randn(2, 3) * scale, then m:load or x:copy_(y)", layer_norm = 'x:layernorm(weight, bias)',
	mse_loss = 'nn.mse(y, target)', nll_loss = 'nn.nll(y, target)',
	NLLLoss = 'nn.nll(y, target)', quantized = 'm:quantize', relu = 'x:relu()',
	scaled_dot_product_attention = 'nn.attention(q, k, v)', sigmoid = 'x:sigmoid()', softmax = 'x:softmax(axis)',
	tanh = 'x:tanh()', utils = 'optim.clip(m, {limit = 1})',
}

local OPTIM = {
	CosineAnnealingLR = 'optim.cosine{lr = 1e-3, steps = n}', LBFGS = 'optim.sgd, optim.adam or optim.adamw',
	OneCycleLR = 'optim.onecycle', StepLR = 'optim.step',
	lr_scheduler = 'optim.cosine, optim.step or optim.onecycle', clip_grad_norm_ = 'optim.clip(m, {limit = 1})',
}

local QUANT = {
	FakeQuantize = 'x:fake(spec)', MinMaxObserver = "quant.observer 'int8@minmax'",
	HistogramObserver = 'quant.observer', QConfig = 'quant.spec', convert = 'm:quantize',
	fake_quantize = 'x:fake(spec)', fuse_modules = 'm:fuse()', prepare = 'm:calibrate', prepare_qat = "m:quantize{mode = 'qat'}",
	quantize = "x:quantize 'int8'", quantize_dynamic = "m:quantize{mode = 'dynamic'}",
	quantize_per_channel = "x:quantize 'int8/1'", quantize_per_tensor = "x:quantize 'int8'",
}

local MODULE = {
	add_module = "m:add('name', module)", append = 'm:add(module)',
	buffers = 'm:state()', children = 'pairs(m:named())', cpu = "m:to 'cpu'",
	cuda = "m:to with a device, see help 'gpu'", double = "m:to 'float64'", float = "m:to 'float32'",
	fuse_model = 'm:fuse()', half = "m:to 'float16'", load_state_dict = "m:load 'file.safetensors'",
	modules = 'pairs(m:named())', named_buffers = 'm:state()', named_children = 'm:named()',
	named_modules = 'm:named()', named_parameters = 'm:state()', num_parameters = 'm:summary()', predict = 'm(x)',
	prepare_qat = "m:quantize{mode = 'qat'}",
	requires_grad_ = 'for _, p in ipairs(m:parameters()) do p:requires_grad_(false) end',
	save_pretrained = "m:save 'file.safetensors'",
	state_dict = 'm:state()', apply = 'pairs(m:named())',
}

local OPTIMIZER = {zero_grad = 'o:zero()', state_dict = 'o:state()', load_state_dict = 'o:load(o:state())', param_groups = 'o:lr()', get_lr = 'o:lr()'}

local DATA = {
	DataLoader = 'data.loader(ds, {batch = 32})', Dataset = 'data.tensors(x, y)', TensorDataset = 'data.tensors(x, y)', ImageFolder = "data.folder 'name'",
	MNIST = 'data.mnist{}', CIFAR10 = 'data.cifar10{}', FashionMNIST = 'data.fashion{}', random_split = 'ds:split(n)', Subset = 'ds:narrow(from, to)',
	read_csv = "bench.load 'file.csv' gives a report", load = "tensor.load 'file'",
}

local GLOBALS = {
	np = 'tensor', numpy = 'tensor', torch = 'tensor, nn, optim and quant', tf = 'tensor and nn', jnp = 'tensor',
	F = 'nn and methods of tensors', plt = 'plot', pd = 'report', pandas = 'report', matplotlib = 'plot',
	dict = '{name = value}', enumerate = 'for i, v in ipairs(list)', float = 'tonumber(x)',
	int = 'math.tointeger(x) or x // 1', isinstance = 'type(x)', len = '#x', list = '{1, 2, 3}',
	range = 'for i = 1, n do … end', str = 'tostring(x)', bool = 'x ~= nil',
	zip = 'for i = 1, #a do … a[i], b[i] … end', sum = 'x:sum()', max = 'math.max(a, b) or x:max()',
	min = 'math.min(a, b) or x:min()', abs = 'math.abs(a) or x:abs()', round = 'math.floor(a + 0.5) or x:round()',
	sorted = 'table.sort(list)', open = "io.open 'name'", input = 'io.read()', printf = 'print((…):format(…))',
	console = 'print(x)', exec = 'load(text)()', eval = 'load("return " .. text)()', dir = '%who and ?name',
	vars = '%who', tuple = '{1, 2, 3}', set = '{[x] = true}', format = '("…"):format(x)',
}

local PLOT = {
	imshow = 'plot.image{x}', xlabel = "plot.line{y, xlabel='x'}", ylabel = "plot.line{y, ylabel='y'}",
	plot = 'plot.line{y}', lineplot = 'plot.line{y}', heatmap = 'plot.heat{x}', matshow = 'plot.heat{x}', pcolormesh = 'plot.heat{x}',
	histogram = 'plot.hist{x}', histplot = 'plot.hist{x}', boxplot = 'plot.box{x}', violinplot = 'plot.box{x}', barplot = 'plot.bar{y}',
	barh = 'plot.bar{y, horizontal=true}', scatterplot = 'plot.scatter{x=, y=}', show = 'fig:show()', savefig = "fig:save 'a.png'",
	figure = 'plot.line{y, width=800, height=600}', subplots = 'plot.line{a, b, panels=true}', semilogy = 'plot.line{y, ylog=true}',
	semilogx = 'plot.line{y, xlog=true}', loglog = 'plot.line{y, xlog=true, ylog=true}', title = "plot.line{y, title='a'}",
}

local KINDS = {tensor = TENSOR, functions = FUNCTIONS, nn = NN, optim = OPTIM, quant = QUANT, module = MODULE, optimizer = OPTIMIZER, plot = PLOT,
	data = DATA, global = GLOBALS}
habits.kinds = KINDS

-- What to write instead of a name, as the end of a message, or nil.
function habits.answer(kind, name)
	local found = KINDS[kind] and KINDS[kind][name]
	return found and '; here: ' .. found or nil
end

-- The same for a name of torch, np or another such global that a line mentions: `rest` is "nn.Linear" or "zeros".
function habits.of_global(name, rest)
	local answer = habits.answer('global', name)
	if not answer or not rest or not answer:find 'tensor' and not answer:find 'nn' then return answer end
	local module, field = rest:gsub('^nn%.functional%.', 'functional.'):match '^(%l+)%.([%w_]+)'
	local places = {nn = nn, optim = optim, quantization = quant, functional = nn}
	if not places[module] then module, field = nil, rest:match '^[%w_]+' end
	local kind = module == 'functional' and 'nn' or module == 'quantization' and 'quant' or module or 'functions'
	local place = module and places[module] or tensor
	for _, own in ipairs {field, field and field:lower()} do
		if place[own] ~= nil then return '; here: ' .. (module and kind or 'tensor') .. '.' .. own end
	end
	return field and (habits.answer(kind, field) or not module and TENSOR[field] and '; here: ' .. TENSOR[field]) or answer
end

return habits
