-- SPDX-License-Identifier: MIT
-- Help on ideas that have no function of their own, and one page for each module of C.
local _, internal = ...
local doc = internal.import 'interp/prelude/base'.doc

local function concept(name, text, example)
	return doc {name = name, kind = 'concept', text = text, example = example}
end

---------------------------------------------------------------- modules

doc {name = 'tensor', kind = 'module', usage = 'tensor{…}  tensor.name(…)  x:name(…)', text = [[Arrays of numbers with up to 8 axes, of any dtype, plain or quantized. tensor{…}
makes one from nested lists; tensor.zeros, tensor.randn and others take sizes. Methods are called with a colon, x:sum(); most
are also functions, tensor.add(x, y). + - * / ^ % work elementwise with broadcasting; the matrix product is
x:matmul(y). A method whose name ends in _ modifies the tensor in place; the others leave it unchanged.]],
	example = [[x = tensor{{1,2},{3,4}}
print(x:size())  --> 2 2
print((x * 10):sum():item())  --> 100.0
print(x[2][1]:item(), x['2, :']:totable()[2])  --> 3.0 4.0]]}

doc {name = 'quant', kind = 'module', usage = 'quant.spec  quant.compare  quant.estimate  quant.log  …', text = [[Quantization: specs, comparisons of specs, size estimates, and
the ledger of which ops ran in integers. Tensors are quantized by their methods: x:quantize,
q:dequantize, q:requantize, x:error.]],
	example = [[x = tensor{{1,-2,3},{0.5,0.25,-1}}
print(x:quantize('int8'):codes():totable()[1][3])  --> 127]]}

doc {name = 'gpu', kind = 'module', usage = 'gpu.available  gpu.info  gpu.devices  gpu.memory  gpu.sync  gpu.fallback  gpu.kernels',
	text = [[Tensors and models move to a GPU by x:to 'cuda' and m:to 'cuda' and back by :to 'cpu'; tensor.zeros{2, 3, device='cuda'} makes one there,
tensor.load(file, {device='cuda'}) reads one, and the program's option --device cuda (QUOLL_DEVICE) makes all new tensors there. An op runs
where its operands are; they are on one device, numbers and CPU tensors of one number mix with any. m:fit, m:evaluate, m:calibrate,
m:generate, quant.search and bench.models move batches to the model's device; data.loader{device=} gives them there.

gpu.available and gpu.info say what is there and why not, gpu.devices the names: cuda is the first GPU, cuda:1 the second. cudaemu runs the
same kernels on the CPU, slowly, for tests and learning. What has no kernel runs on the host, with copies of its operands: quant.log shows path
host and the reason, gpu.fallback makes it a warning or an error. Ops are queued: x:item(), x:totable(), printing, saving and gpu.sync wait for
them, and bad indices and classes are errors then. gpu.memory counts bytes on devices and those that were copied; hw.force chooses kernels
(gpu.kernels), and at its level ref products have the bits of the CPU.

State of the kernels: tested on the CPU by emulation; not yet run on a GPU.]], example = [[print(gpu.memory().total >= 0)  --> true]]}

---------------------------------------------------------------- concepts

concept('spec', [[A spec says how something is quantized. It is a string, dtype[/axis][:block][@observer] and words, or a table with the fields
dtype bits scheme axis block observer p momentum bins octaves scale zero_point minimum rounding priority; false means "leave it float". The same spec is accepted wherever
something is quantized: x:quantize, quant.compare, quant.estimate, options such as out= and quant=.

  'int8'        8 bits, one scale for the whole tensor, symmetric: code 0 is 0.0
  'uint8'       8 bits without sign, asymmetric: with a zero point
  'int8/1'      one scale per index of axis 1 (row, output channel)
  'int4:32'     one scale per 32 elements of the last axis
  'int8@mse'    how the range of the data is chosen: see observers
  {bits=3, axis=1}, {dtype='uint8', scale=0.1, zero_point=128}
  {bits={8,4,2}, axis=1}   a number of bits for each channel, which are stored at their own widths; the dtype is that of the widest one
  q:qparams()   the parameters of a tensor, with its scales and zero points; q:spec() is the spec without them

More words, separated by blanks, set other fields: a scheme, or field=value; lists are separated by commas.

  'int8 asymmetric'    'int4/1 bits=3'    'uint8@percentile p=99.9'
  'int8 log octaves=8'   'int8/1 bits=8,4,2'
  'uint8 scale=0.1 zero_point=128'   'int8/1 scale=0.1,0.2'
  'int8:2 scale=2x1:0.1,0.2'   a tensor of two axes: sizes first

tostring(spec) gives such a text, and quant.spec reads it back as the same spec (except functions as observers and lists of more than
4096 numbers). A scale without a zero point means zero point 0, as in ONNX, or the middle of the code range for symmetric unsigned codes, and a minimum of 0 for specs with +min. Explicit
numbers are checked: scales are finite and positive, zero points are integers within the code range, and there are as many of each.

dtypes: int8 uint8 int4 uint4 int16 uint16, also of 2, 3, 5 and 6 bits, binary, or bits=2…16; float32 float16 bfloat16 float8_e4m3
float8_e5m2 are stored without codes. A format name may replace the dtype: 'mxfp4', 'nf4:64', 'nvfp4'; see formats. The scheme
defaults to symmetric for signed dtypes and asymmetric for unsigned ones; log is the third. +min after a block (2 to 8 bits) stores a real
minimum with each scale, and codes start at 0: 'int4:32+min'.

rounding= selects how integer results (out= of quantized operands, q:requantize) become codes: 'float' (the default), or
one of other rules, see requantization. It does not affect x:quantize, which always divides. rounding='stochastic' is for
x:quantize: it rounds up or down at random in proportion to the distance, which keeps the mean; tensor.seed and the position of an
element decide. quant_min= and quant_max= bound the codes; scaling='pow2' makes scales powers of two.

priority= fills in fields that are not given. 'speed', the default: one scale and the observer minmax. 'accuracy': one scale per row (axis 1), or
per 32 elements at 4 bits and below, and the observer mse. It is meant for weights: inputs have one scale, and integer products need one scale per
output. hw.recommend measures which spec is fast and accurate enough on this machine.]],
	[[print(quant.spec{dtype='int4', block=32})  --> int4:32
print(quant.spec 'uint8'.scheme)  --> asymmetric
print(quant.spec 'int8 log bits=6'.scheme)  --> log
print(quant.spec{dtype='int8', priority='accuracy'})  --> int8/1@mse]])

concept('formats', [[A format names codes, their values and their scales together; it is given in place of the dtype of a spec: x:quantize 'mxfp4',
m:quantize{weight='nf4:64'}, quant.compare(x, {'nvfp4', 'int4:32'}). quant.formats() lists them with bits per weight; help 'mxfp4' describes
one.

  fp8_e4m3 fp8_e5m2, fp6_…, fp4_…   small floating point; /1, :32 as with dtypes
  mxfp8_…, mxfp6_…, mxfp4, mxint8   OCP MX: a power-of-two scale per 32 elements
  nvfp4          an FP8 scale per 16 elements and a float32 scale per tensor
  nf4:64 af4:64  16 values at quantiles, scale max|x|
  ternary        -1, 0, 1 with the scale mean|x|

q:dtype() is the storage dtype of the codes, q:spec() the format, q:codes() the codes: bit fields, not necessarily in the order of
their values. q:qparams().scale may itself be quantized (nvfp4) or have a narrow dtype (float8_e8m0); it prints as numbers.

scaling= selects how the power of two is derived from max|x| (floor, even, ceil as in OCP MX; pow2: the smallest that clips nothing);
saturate=false lets FP8 overflow to infinity or NaN. Table formats have no integer path but that of linear with tables of small
integers (FP4, FP6 E2M3, MXFP4, NVFP4, IQ4_NL) beside 8-bit inputs: ops decode first, and the ledger records it. Views work if they do not split blocks; files keep the format. Plain dtypes of the same values, without a scale, are
float8_e4m3 and float8_e5m2. See spec, grid, quantization.]],
	[[q = tensor.ones(4, 64):quantize 'mxfp4'
print(q:dtype(), q:spec(), q:qparams().scale:dtype())  --> uint4 mxfp4 float8_e8m0
print(#quant.formats() > 10)  --> true]])

concept('printing', [[print(x) shows dtype and shape, then the values; if there are more than 1000 elements, only the first and last three along each axis.
A tensor with more than two axes takes at most 40 lines: first blocks are left out, then rows; %set lines changes the limit, 0 removes it.
Lines are no wider than the terminal: columns that do not fit become …; %set width changes the width. In notebooks, in tests and
when the output is not a terminal, the width is 80.

A quantized tensor prints its decoded values, preceded by its scheme, granularity, scales, zero points, bytes,
and the share of codes at the ends of the range. Those values were clipped, or they are the minimum and maximum
that set the range; the codes alone cannot distinguish the two. x:error(q).clipped can, where x is the original.
x:codes() prints the codes.

for i, row in pairs(x) do (or ipairs) iterates over axis 1: rows are views; elements of a 1-d tensor are tensors without axes,
whose number is row:item(). See tensor, settings.]],
	[[q = tensor{-2,1,2}:quantize 'int8'
print((tostring(q):gsub('\n.*', '')))  --> int8(3) symmetric, scale 0.01575, 7 B, 66.67 % at the ends
sum = 0
for i, v in pairs(tensor{5,7}) do sum = sum + i * v:item() end
print(sum)  --> 19.0]])

concept('requantization', [[How a sum of products of codes becomes a code of the result when an op on quantized operands has
out=. The factor is M = scale_a scale_b / scale_out; the spec's field rounding, or g:quantize{rounding=}, chooses the rule.

  float    sat(rint((float)sum * (float)M) + zero_point), half to even
  single   M as an integer m of 31 bits and a shift n, rounded once:
           (sum m + 2^(n-1)) >> n, as TFLite with TFLITE_SINGLE_ROUNDING
  double   the same m, rounded twice: the high half of 2 sum m, then a
           rounding shift, as TFLite by default (gemmlowp)
  exact    sum M in float64, halves away from 0, as FULLY_CONNECTED of
           LiteRT 2.3; on devices such results are computed on the host

float is the default; single and double need no floats. With an operand of 16 bits the sum has 64 bits and m 16 (int16x8 of TFLite), rounded
once in both; exact has no such limit. The bias is an integer at scale_a scale_b. The operands of add are rescaled to a scale 2^20 times finer than twice the larger
scale (16 bits: 2^15; 2^14 with a zero point), added, and rescaled to the result. Products, concatenation, means of
windows and q:requantize use one factor each; by double, means of windows under the scale and zero point of x are the sum of the codes
divided by their number, halves away from 0, and softmax to 8 bits of scale 1 / 256 is that of TFLite, too, as are sigmoid and tanh of 16 bits to the scale
1 / 32768, leakyrelu, and hardswish of 8 bits. Other functions (tables), norms, other softmax and attention of codes support only float, as does a result that is computed from floats (act='gelu'); any other rule is an
error. See spec.]],
	[[a, w = tensor{{1, 0.5}}:quantize 'int8', tensor{{0.3, -0.7}}:quantize 'int8'
y = a:linear(w, {out={dtype='int8', scale=0.001, rounding='single'}})
print(y:codes():item(), quant.spec{dtype='int8', rounding='double'})  --> -55 int8 rounding=double]])

concept('observers', [[An observer chooses the range that the codes cover. x:quantize applies it to one tensor, quant.observer to many.

  minmax      smallest and largest value: nothing is clipped (the default)
  average     moving averages of both, updated once per batch (momentum=0.01)
  percentile  the range of p percent of the values (p=99.99)
  entropy     the threshold that loses the least information (TensorRT's rule)
  mse         the range with the least squared error on the data seen
  adaptive    the same, but forgets old data when new data differs
  a function  of your own: function(histogram, spec) return lo, hi end

All read a histogram of fixed size, so memory does not grow with the data. Clipping a few outliers makes the steps finer for
all other values; the fewer the bits, the more this helps. o:stats() suggests the simplest observer that suffices.]],
	[[x = tensor.randn(10000)
x[1] = 30
a, b = x:quantize 'int4', x:quantize 'int4@mse'
print(x:error(b).sqnr > x:error(a).sqnr)  --> true]])

concept('quantization', [[A quantized tensor holds integer codes and scales: x ≈ (code - zero_point) * scale. Quantizing divides by
the scale (exactly, in float32), rounds half to even, adds the zero point and saturates at the ends of the dtype; NaN
becomes the zero point and is counted. The scale covers the range that the observer found; for symmetric specs it is
max|x| / 127 at 8 bits. 0.0 is always restored exactly. Codes are bit-identical on every kernel.

x:error(q) measures the error; each bit adds about 6 dB of SQNR.]],
	[[x = tensor{-1, 0, 0.3, 1}
q = x:quantize 'int8'
print(q:codes())  --> int8(4) -127    0   38  127
print(q:error(x).max < q:qparams().scale:item() / 2)  --> true]])

concept('granularity', [[How many scales a quantized tensor has: one; one per index of an axis ('int8/1'); one per block of consecutive
elements ('int4:32'). More scales fit the data better and cost bytes: a float32 per index of an axis, a float16 per
block of codes of at most 8 bits (rounded up for asymmetric codes, whose ends would be clipped otherwise), a float32 per block of 16-bit codes. Integer products need scales that are constant along the summed axis; with blocks along it they fall back.]],
	[[x = tensor{{1, 2}, {100, 50}}
print(x:quantize('int8/1'):qparams().scale:size())  --> 2]])

concept('views', [[x[i], slices, x:view, x:t, x:permute, x:narrow, x:expand and similar methods return a view, which shares the tensor's data
without a copy. Writing to a view writes to the original. Views keep quantization: the axis of the scales moves with
the axis it belongs to, and slicing that axis slices the scales. A view that would split a block or mix the quantized axis
with another raises an error that suggests q:dequantize() first. x:clone() copies.]],
	[[x = tensor{{1,2,3},{4,5,6}}
x[1]:fill_(0)
print(x:sum():item())  --> 15.0]])

concept('indexing', [[Indices start at 1; ranges include both ends; negative indices count from the end.

  x[2]                 index 2 of axis 1; the result has one axis less
  x[{ {1,10}, {}, 3 }] rows 1 to 10, all of axis 2, index 3 of axis 3
  x['1:10, :, 3']      the same as text
  x['1:9:2, ::-1']     every second of rows 1 to 9, axis 2 from its end
  x[{ {1,9,2} }]       a range with a step; '3:2' is empty
  x[mask]              the elements, or the rows, where a bool tensor is true
  x[ids]               the rows that an integer tensor names
  x[{ {}, ids }]       the columns that it names
  x[2] = 0             assigns; also with slices, masks and indices]],
	[[x = tensor{{1,2,3},{4,5,6}}
print(x['2, 1:2']:totable()[2])  --> 5.0
print(x[{2, {-1, 1, -2}}])  --> float32(2)  6 4
print(x[-1][-1]:item())  --> 6.0]])

concept('fallback', [[Every op works on quantized tensors. If there is an integer path (products, relu, max, add/mul/cat with out=), it computes
on the codes. Products and convolutions of floats with codes (path weight_only) decode these in parts. Otherwise the op falls back: its operands are dequantized, and the float32 result is bit-identical
to the op on q:dequantize(). None of this is hidden: quant.log counts fallbacks with their reasons, x:explain reports how a
value was computed, and quant.fallback 'warn' or 'error' warns or raises an error.]],
	[[q = tensor{1,-2}:quantize 'int8'
print(q:relu():dtype(), (q + 1):dtype())  --> int8 float32
quant.fallback 'error'
print(pcall(function() return q + 1 end))  --> false ...
quant.fallback 'silent']])

concept('ledger', [[The ledger counts every op that runs, with its operands, the path (float32, int8, fallback, …), the kernel and, for a
fallback, the reason. quant.log shows the counts, quant.log 'reset' shows and clears them; x:explain is the
ledger's entry of the op that computed x.]],
	[[quant.log 'reset'
y = tensor{1,2}:quantize 'int8' + 1
print(quant.log():where{path='fallback'}.op)  --> add]])

concept('broadcasting', [[Tensors of different shapes are combined as in NumPy: shapes are aligned at the last axis, and an axis of size 1 (or
a missing one) is repeated. A number combines with any shape.]],
	[[print(tensor{{1},{2}} + tensor{10,20})  --> float32(2, 2)
--> 11 21
--> 12 22]])

concept('promotion', [[The dtype of a result of two operands is the higher in bool < integers < float16/bfloat16 < float32 < float64. float16 with bfloat16 gives
float32; two integers give the wider one; signed and unsigned of the same width give the next wider signed dtype. With a Lua integer an integer
tensor keeps its dtype, with a Lua float the result is float32. Plain integers wrap, / gives float32, // and % floor. x:to(dtype)
casts: it rounds half to even and saturates; it never quantizes.]],
	[[print((tensor{1, dtype='int8'} + tensor{1, dtype='uint8'}):dtype())  --> int16
print((tensor{1, dtype='int8'} + 1):dtype(), (tensor{1, dtype='int8'} + 1.5):dtype())  --> int8 float32]])

concept('random', [[All random numbers depend on tensor.seed(n): the same seed and number of threads give the same bits on every
kernel. Without a seed each session starts with the same numbers, too. math.random is Lua's own generator and independent.]],
	[[tensor.seed(1)
a = tensor.rand(3)
tensor.seed(1)
print(a:eq(tensor.rand(3)):all():item())  --> true]])

concept('errors', [[A wrong call is a Lua error with one line: function, argument, what was wanted and what was given, with shapes and
dtypes, at the position of the calling line. For an unknown name the error suggests the nearest known one. pcall catches errors as
usual; tensors are unchanged.]],
	[[print(pcall(tensor.zeros, {2, dtyp='int8'}))  --> false zeros: unknown option 'dtyp'; did you mean 'dtype'?...]])

concept('options', [[Sizes and operands are positional, everything else is named in one table: tensor.zeros{2, 3, dtype='int8'},
x:sum{axis=1, keep=true}. A single table or string needs no parentheses: x:quantize 'int8'. An unknown name is an
error.

Options of the program: --threads, --kernel, --data and others, each also an environment variable such as QUOLL_THREADS; `quoll --help`
lists them.]],
	[[print(tensor{{1,2},{3,4}}:sum{axis=1}:totable()[2])  --> 6.0]])

concept('files', [[tensor.load and tensor.save choose the format by the file name's extension: .npy .npz .safetensors .png, and for reading also idx
and .jpg; see help 'npy' and so on. Files are replaced atomically; a damaged file raises a one-line error. Quantized
tensors keep their scales in .safetensors. report:save saves reports, file= saves figures.]],
	[[tensor.save('x.npy', tensor{1,2,3})
print(tensor.load 'x.npy':sum():item())  --> 6.0
os.remove 'x.npy']])

-- Texts that have the ops when they are read.
local function lines_of(names)
	local lines, line = {}, ''
	for _, name in ipairs(names) do
		if #line + #name > 110 then lines[#lines + 1], line = line, '' end
		line = line .. (line == '' and '' or ' ') .. name
	end
	lines[#lines + 1] = line
	return table.concat(lines, '\n')
end

local function concept_of(name, text, example)
	setmetatable(concept(name, nil, example), {__index = function(_, key) return key == 'text' and text() or nil end})
end

concept_of('onnx', function()
	local handlers = internal.import 'nn/onnx/handlers'
	return [[graph.load 'model.onnx' gives a graph, with the weights as constants under their names in the file. Opsets 7 to 28; each op follows the
version that the model imports. One axis may stay the batch, all other sizes are numbers (inputs=), so what hangs on sizes is computed when
the file is read, and an If takes one branch.

]] .. lines_of(handlers.names '') .. '\n\nOf com.microsoft, as quantizers and exporters of language models write them:\n\n' .. lines_of(handlers.names 'com.microsoft') .. [[


Ops whose results have sizes that depend on values (NonZero, Unique, Compress, NonMaxSuppression), loops (Loop, Scan), sequences, strings, random
numbers and training are refused, as are other fused float ops of onnxruntime's optimizer: export the model without optimization. Models
that are refused name every op that is missing. `graph.load` reads the file; `nn.Graph` makes the graph a module.]]
end, [[print(pcall(graph.load, 'missing.onnx'))  --> false	...]])

concept_of('tflite', function()
	return [[TFLite files (LiteRT's models, schema version 3) become graphs by graph.load. Images keep their channels last in inputs and outputs,
inside they are (batch, channel, height, width). An input whose first axis is open stays the batch; others take a size by inputs=.

A model of integers stays one: weights, biases, scales and zero points are those of the file, sums are rounded as by LiteRT's reference
kernels (rounding='double', FULLY_CONNECTED 'exact': help 'requantization'), so convolutions, dense layers, sums, products, pools and
softmax have the same codes. LOGISTIC and TANH of 16 bits, LEAKY_RELU and HARD_SWISH are those of the kernels; other functions are tables of
exact values, MEAN rounds once, other ops decode, compute floats and encode. Inputs take codes, plain integers of their dtype, which are codes without their scale, or floats, which are quantized;
outputs are codes: y:dequantize() are their values, y:codes() the plain integers. Weights of 8 bits beside float activations stay codes
that are decoded; LiteRT rounds the activations there, too.

States of recurrent ops begin with zeros in each run, or are inputs and outputs: graph.load{file, states=true}. SVDF and LSTMs of codes
(8 bits with cells of 16, at most 128 steps; no peepholes, projections or norms) have the codes of the kernels, other LSTMs are computed in floats. Ops:

]] .. lines_of(internal.import 'nn/tflite/read'.names())
end, [[print(pcall(graph.load, 'missing.tflite'))  --> false	...]])

concept('figure', [[plot.<kind>{…} and report:plot return a figure. In a script figure:show() draws it, and print(figure) describes
it. The prompt draws it, as a picture in terminals that support the graphics of
kitty, iTerm2 or sixel, else with characters; QUOLL_PLOT chooses. figure:save writes a file in the format of its extension, file= in the
call does so at once, figure:text returns the characters.]],
	[[fig = plot.line{{1, 4, 9}, title='squares'}
print(#fig:text() > 0)  --> true]])

doc {name = 'collectgarbage', usage = "collectgarbage()  collectgarbage 'count'  collectgarbage(mode)", text = [[Lua's own function: runs the collector, returns Lua's
memory in KiB ('count', without the tensors), or sets its mode: 'incremental' (the default), 'generational', 'stop', 'restart'.
These modes apply to Lua's own data. Tensors are collected at their own pace, the same in every mode and also after 'stop': see memory.]],
	example = [[collectgarbage 'stop'
for i = 1, 100 do local x = tensor.zeros(1000000) end
print(tensor.memory().now < 64 << 20)  --> true
collectgarbage 'restart']]}

concept('memory', [[A tensor is freed when the collector finds it unused. The collector runs, in every mode of collectgarbage, when tensors hold at least 1 MiB more than after
its last run (plus four to twelve times the size of Lua's own data and an eighth of what tensors held).
local t <close> = … frees a tensor at the end of its block. tensor.memory() reports the bytes in use and their peak, x:nbytes() those of one tensor, who() those of
all variables; --memory sets a limit, and exceeding it is an ordinary error.]],
	[[x = tensor.zeros(1000)
print(x:nbytes(), tensor.memory().now >= 4000)  --> 4000 true]])

concept('notebook', [[A Lua file that comments divide into cells is a notebook: `-- %%` begins a code cell, `-- %% Title tags=["skip"]` one
with a title and metadata, `-- %% [markdown]` a text cell whose lines are comments, with $formulas$, tables and pictures. The file remains
a Lua script, and the values after `-->` are tests: `quoll test nb.lua`.

`quoll run nb.lua` runs the cells like inputs of the prompt and stores their outputs beside the file; --html, --ipynb and --md export
them, --param name=value overrides a variable of the cell tagged parameters, --watch reruns what changed. `quoll convert` converts between
.lua, .ipynb, .html and .md without running anything; Jupyter with Jupytext opens the .lua directly. See `quoll run --help`.]],
	[[file = io.open('nb.lua', 'w'):write('-- %% [markdown]\n-- # Hello\n-- %%\nprint(1 + 1)\n'):close()
dofile 'nb.lua'  --> 2
os.remove 'nb.lua']])

concept('display', [[Notebooks, exported pages and Jupyter show a value in its richest form: figures as pictures; tensors, reports and
models as tables; everything else as at the prompt. A class of your own defines its forms by the metafield __mime, a function of the
value that returns a table from MIME type to text: text/plain, text/html, text/markdown, image/svg+xml, or image/png as bytes. Exported pages accept
plain tables and words of HTML and show other HTML as text. The prompt shows __tostring.]],
	[[swatch = setmetatable({colour = 'teal'}, {__name = 'swatch', __tostring = function(s) return s.colour end, __mime = function(s)
  return {['image/svg+xml'] = '<svg width="40" height="40"><rect width="40" height="40" fill="' .. s.colour .. '"/></svg>'}
end})
print(swatch)  --> teal]])

concept('sandbox', [[A script is a program: it may do everything that you may do. Loading data and opening a notebook run no code.

`quoll --sandbox out:data script.lua` runs one that you do not trust. Linux confines it (Landlock and seccomp), for all threads and until it
exits: it may read and write files only below the named folders and in a temporary folder that is removed when it exits; it may also read the script
and the files named after it, the data folder and the system's libraries and fonts. It cannot start programs, open sockets, signal
other processes or inject input into the terminal, so
!commands, sweeps (except with jobs=0), Jupyter and compiling exported C do not work. In Lua os.execute, os.remove, os.rename, os.exit, io.popen,
package.loadlib, most of debug, C modules and bytecode raise errors, and os.getenv returns only a few variables. --memory defaults to half of the machine's
memory; --time N ends the program after N seconds with exit code 124. A Linux kernel without these features is an error.]],
	[[print(io.popen([=["/proc/$PPID/exe" --sandbox none -e 'print(io.open "/etc/passwd")' 2>&1]=]):read 'a'
  :find 'Permission denied' ~= nil)  --> true]])

---------------------------------------------------------------- keys

-- One line for each command of interp/repl/keys.def, with all keys that are bound to it.
local function key_lines()
	local keys, texts, order = {}, {}, {}
	for _, row in ipairs(internal.keys()) do
		local key, command, text = table.unpack(row)
		if not keys[command] then
			keys[command] = {}
			order[#order + 1] = command
		end
		table.insert(keys[command], key)
		if text ~= '' then texts[command] = text end
	end
	local lines = {}
	for _, command in ipairs(order) do
		local left = table.concat(keys[command], ' ')
		lines[#lines + 1] = ('  %-19s %s'):format(left, texts[command])
	end
	return table.concat(lines, '\n')
end

concept('keys', [[The keys of the prompt. C- is Ctrl, M- is Alt or Escape before the key, S- is Shift.

]] .. key_lines() .. [[


Input is highlighted as Lua; the bracket matching the one at the cursor is marked; the newest earlier
input with the same beginning is suggested in grey. Pasted text is one edit and runs nothing. Inputs are saved in
$XDG_STATE_HOME/quoll/history (default ~/.local/state), each once, except those that begin with a blank.

With "set editing-mode vi" in ~/.inputrc, or %set editing_mode vi, Escape enters vi's normal mode: h l w b e 0 ^ $ j k G gg
f F t T ; , % with d c y and counts, x X s S D C Y p P r ~ J u, i a I A o O, / searches, Enter runs. NO_COLOR turns off
colours; with TERM=dumb or a pipe there is no editor and no escape sequence.]],
	[[help 'keys']])
