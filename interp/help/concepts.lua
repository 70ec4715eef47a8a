-- SPDX-License-Identifier: MIT
-- Help on ideas that have no function of their own, and one page for each module of C.
local _, internal = ...
local doc = internal.import 'interp/prelude/base'.doc

local function concept(name, text, example)
	doc {name = name, kind = 'concept', text = text, example = example}
end

---------------------------------------------------------------- modules

doc {name = 'tensor', kind = 'module', usage = 'tensor{…}  tensor.name(…)  x:name(…)', text = [[Arrays of numbers with up to 8 axes, of any dtype, plain or quantized. tensor{…}
makes one of nested lists, tensor.zeros, tensor.randn and others by size. Methods are called with a colon, x:sum(); most
exist as functions, too, tensor.add(x, y). + - * / ^ % work elementwise with broadcasting, the matrix product is
x:matmul(y). A method whose name ends in _ changes the tensor itself, all others leave it alone.]],
	example = [[x = tensor{{1,2},{3,4}}
print(x:size())  --> 2 2
print((x * 10):sum():item())  --> 100.0
print(x[2][1]:item(), x['2, :']:totable()[2])  --> 3.0 4.0]]}

doc {name = 'quant', kind = 'module', usage = 'quant.spec  quant.compare  quant.estimate  quant.log  …', text = [[How numbers become codes and back: specs, comparisons of specs, estimates of size, and
the ledger of what ran in integers and what did not. The work itself is done by methods of tensors: x:quantize,
q:dequantize, q:requantize, x:error.]],
	example = [[x = tensor{{1,-2,3},{0.5,0.25,-1}}
print(x:quantize('int8'):codes():totable()[1][3])  --> 127]]}

doc {name = 'gpu', kind = 'module', usage = 'gpu.available  gpu.info  gpu.memory  gpu.sync', text = [[Whether there is a GPU that can be used, and why not. It is used by moving a tensor there:
x:to 'cuda'.]], example = [[print(gpu.memory().total >= 0)  --> true]]}

---------------------------------------------------------------- concepts

concept('spec', [[A spec says how something is quantized. It is a string, dtype[/axis][:block][@observer] and words, or a table with the fields
dtype bits scheme axis block observer p momentum bins octaves scale zero_point rounding priority; false means "leave it float". The same spec goes wherever
something is quantized: x:quantize, quant.compare, quant.estimate, options such as out= and quant=.

  'int8'        8 bits, one scale for the whole tensor, symmetric: code 0 is 0.0
  'uint8'       8 bits without sign, asymmetric: with a zero point
  'int8/1'      one scale per index of axis 1 (row, output channel)
  'int4:32'     one scale per 32 elements of the last axis
  'int8@mse'    how the range of the data is found: see observers
  {bits=3, axis=1}, {dtype='uint8', scale=0.1, zero_point=128}
  {bits={8,4,2}, axis=1}   a number of bits for each channel; stored in the dtype that holds the widest one
  q:qparams()   what a tensor is quantized with, its numbers included; q:spec() is the spec without them

Words after the first, separated by blanks, say the rest: a scheme, or field=value, lists with commas.

  'int8 asymmetric'    'int4/1 bits=3'    'uint8@percentile p=99.9'
  'int8 log octaves=8'   'int8/1 bits=8,4,2'
  'uint8 scale=0.1 zero_point=128'   'int8/1 scale=0.1,0.2'
  'int8:2 scale=2x1:0.1,0.2'   a tensor of two axes: sizes first

tostring of a spec is such a text, and quant.spec reads it back as the same spec (but for functions as observers and lists of more than
4096 numbers). A scale alone means the zero point 0, as in ONNX, or the middle of the codes with symmetric unsigned ones. Explicit
numbers are checked: scales finite and above 0, zero points whole and within the codes, as many of both.

dtypes: int8 uint8 int4 uint4 int16 uint16, 2 3 5 and 6 bits too, binary, or bits=2…16; float32 float16 bfloat16 float8_e4m3
float8_e5m2 are stored as they are. A format's name may be in place of the dtype: 'mxfp4', 'nf4:64', 'nvfp4'; see formats. The scheme is
symmetric for signed dtypes, asymmetric for unsigned ones, or log. +min after a block of 2 to 8 bits: a real minimum for each scale, and
codes from 0 on, 'int4:32+min'.

rounding= is the rule by which integer results (out= of quantized operands, q:requantize) become codes: 'float' (the default), or
one of fixed point, see requantization. Numbers are quantized by dividing, whatever it says.

priority= fills in what is not given: 'speed' as ever, one scale and the observer minmax; 'accuracy' a scale for each row (axis 1), at 4 bits
and below for each 32 elements, and the observer mse. It is meant for weights: inputs have one scale, and products in integers one for each
output. What is fast and good enough on this machine is measured by hw.recommend.]],
	[[print(quant.spec{dtype='int4', block=32})  --> int4:32
print(quant.spec 'uint8'.scheme)  --> asymmetric
print(quant.spec 'int8 log bits=6'.scheme)  --> log
print(quant.spec{dtype='int8', priority='accuracy'})  --> int8/1@mse]])

concept('formats', [[A format is a name for codes, their values and their scales together, given where a spec has a dtype: x:quantize 'mxfp4',
m:quantize{weight='nf4:64'}, quant.compare(x, {'nvfp4', 'int4:32'}). quant.formats() lists them with bits per weight; help 'mxfp4' says
what one is.

  fp8_e4m3 fp8_e5m2, fp6_…, fp4_…   small floating point; /1, :32 as of dtypes
  mxfp8_…, mxfp6_…, mxfp4, mxint8   OCP MX: a power of two for 32 elements
  nvfp4          a scale in FP8 for 16 elements, and one in float32
  nf4:64 af4:64  16 values by quantiles, scale max|x|
  ternary        -1, 0, 1 with scale mean|x|

q:dtype() is the dtype in which codes are stored, q:spec() the format, q:codes() the codes: bit fields, which need not be in the order of
their values. q:qparams().scale may be quantized itself (nvfp4) or of a narrow dtype (float8_e8m0); it prints as numbers.

scaling= says how a power of two follows from the largest |x| (floor, even, ceil of OCP MX; pow2: the least that clips nothing);
saturate=false lets FP8 overflow to infinity or NaN. Sums and products of tables have no integer path: ops decode first and the ledger
says so. Views work where they keep the blocks whole; files keep the format. Plain dtypes of the same values, without a scale, are
float8_e4m3 and float8_e5m2. See spec, grid, quantization.]],
	[[q = tensor.ones(4, 64):quantize 'mxfp4'
print(q:dtype(), q:spec(), q:qparams().scale:dtype())  --> uint4 mxfp4 float8_e8m0
print(#quant.formats() > 10)  --> true]])

concept('printing', [[print(x) shows dtype and shape, then the values; of more than 1000 elements only three at both ends of each axis.
With more than two axes the whole takes 40 lines at most: fewer blocks of both ends, then fewer rows; %set lines says another limit, 0 none.
No line is longer than the terminal is wide: columns that have no room become …, %set width says another width. Where the
output goes elsewhere, and in notebooks and tests, it is 80.

A quantized tensor shows the values that its codes stand for, and before them its scheme, granularity, scales, zero points, bytes,
and which part of the codes is at the ends of their range. Those are values that were clipped, or the smallest and
largest ones from which the range was found; the codes alone do not tell. x:error(q).clipped does, where x is the original.
x:codes() prints the codes.

for i, row in pairs(x) do, or ipairs, goes along axis 1: rows are views, elements of one axis are tensors without axes,
row:item() their numbers. See tensor, settings.]],
	[[q = tensor{-2,1,2}:quantize 'int8'
print((tostring(q):gsub('\n.*', '')))  --> int8(3) symmetric, scale 0.01575, 7 B, 66.67 % at the ends
sum = 0
for i, v in pairs(tensor{5,7}) do sum = sum + i * v:item() end
print(sum)  --> 19.0]])

concept('requantization', [[How a sum of products of codes becomes a code under the scale of the result, where an op of quantized operands has
out=. The factor is M = scale_a scale_b / scale_out; the spec's field rounding, or g:quantize{rounding=}, chooses the rule.

  float    sat(rint((float)sum * (float)M) + zero_point), half to even
  single   M as an integer m of 31 bits and a shift n, rounded once:
           (sum m + 2^(n-1)) >> n, as TFLite with TFLITE_SINGLE_ROUNDING
  double   the same m, rounded twice: the high half of 2 sum m, then a
           rounding shift, as TFLite by default (gemmlowp)

float is the default; the others need no floats. With an operand of 16 bits the sum has 64 bits and m 16 (int16x8 of TFLite), rounded
once in both. The bias is an integer at scale_a scale_b. The operands of a sum (add) are taken 2^20 times finer than twice the larger
scale (16 bits: 2^15; 2^14 with a zero point), each rescaled to that, added, and rescaled to the result. Products, joins, means of
windows and q:requantize are one factor each. Tables (tanh), norms, softmax and attention of codes have the rule float only, as has a
result that comes from floats (act='gelu'): another one is an error. See spec.]],
	[[a, w = tensor{{1, 0.5}}:quantize 'int8', tensor{{0.3, -0.7}}:quantize 'int8'
y = a:linear(w, {out={dtype='int8', scale=0.001, rounding='single'}})
print(y:codes():item(), quant.spec{dtype='int8', rounding='double'})  --> -55 int8 rounding=double]])

concept('observers', [[An observer finds the range that codes are to cover. x:quantize uses it on one tensor, quant.observer on many.

  minmax      smallest and largest value: nothing is clipped (the default)
  average     moving averages of both, one step per batch (momentum=0.01)
  percentile  the range of p percent of the values (p=99.99)
  entropy     the threshold that loses the least information (TensorRT's rule)
  mse         the range of the least squared error on the data seen
  adaptive    the same, and forgets old data when new ones differ
  a function  of your own: function(histogram, spec) return lo, hi end

All read a histogram of fixed size, so memory does not grow with the data. Clipping a few outliers makes the steps finer for
all others; that pays the more the fewer the bits. o:stats() suggests the simplest one that will do.]],
	[[x = tensor.randn(10000)
x[1] = 30
a, b = x:quantize 'int4', x:quantize 'int4@mse'
print(x:error(b).sqnr > x:error(a).sqnr)  --> true]])

concept('quantization', [[A quantized tensor holds integer codes and scales: x ≈ (code - zero_point) * scale. Quantizing divides by
the scale (exactly, in float32), rounds half to even, adds the zero point and saturates at the ends of the dtype; NaN
becomes the zero point and is counted. The scale covers the range that the observer found; for symmetric specs it is
max|x| / 127 at 8 bits. 0.0 always comes back as exactly 0.0. Codes are the same bits on every kernel.

x:error(q) measures what was lost; each bit is worth about 6 dB of sqnr.]],
	[[x = tensor{-1, 0, 0.3, 1}
q = x:quantize 'int8'
print(q:codes())  --> int8(4) -127    0   38  127
print(q:error(x).max < q:qparams().scale:item() / 2)  --> true]])

concept('granularity', [[How many scales a quantized tensor has: one; one per index of an axis ('int8/1'); one per block of consecutive
elements ('int4:32'). More scales follow the data more closely and cost bytes: a float32 each per axis, a float16 each per
block of at most 8 bits (rounded up for asymmetric codes, whose ends would be clipped otherwise), a float32 per block of 16 bits. Integer products need scales that do not change along the summed axis; with blocks there they fall back.]],
	[[x = tensor{{1, 2}, {100, 50}}
print(x:quantize('int8/1'):qparams().scale:size())  --> 2]])

concept('views', [[x[i], slices, x:view, x:t, x:permute, x:narrow, x:expand and their like give a view: another look at the same numbers,
without a copy. Writing into a view writes into the original. Views keep quantization: the axis of the scales moves with
the axis it belongs to, and slicing that axis slices the scales. A view that would cut a block or mix the quantized axis
with another is an error that suggests q:dequantize() first. x:clone() copies.]],
	[[x = tensor{{1,2,3},{4,5,6}}
x[1]:fill_(0)
print(x:sum():item())  --> 15.0]])

concept('indexing', [[Everything counts from 1; ranges include both ends; negative numbers count from the end.

  x[2]                 index 2 of axis 1: one axis less
  x[{ {1,10}, {}, 3 }] rows 1 to 10, all of axis 2, index 3 of axis 3
  x['1:10, :, 3']      the same as text
  x[mask]              the elements where a bool tensor is true
  x[2] = 0             writes; also with slices and masks]],
	[[x = tensor{{1,2,3},{4,5,6}}
print(x['2, 1:2']:totable()[2])  --> 5.0
print(x[-1][-1]:item())  --> 6.0]])

concept('fallback', [[Every op works on quantized tensors. Where there is an integer path (products, relu, max, add/mul/cat with out=) the
codes are used as they are. Otherwise the op falls back: its operands are dequantized, the result is float32 and equals, bit
for bit, the op on q:dequantize(). Nothing of this is hidden: quant.log counts it with the reason, x:explain tells how a
value was made, and quant.fallback 'warn' or 'error' makes it loud.]],
	[[q = tensor{1,-2}:quantize 'int8'
print(q:relu():dtype(), (q + 1):dtype())  --> int8 float32
quant.fallback 'error'
print(pcall(function() return q + 1 end))  --> false ...
quant.fallback 'silent']])

concept('ledger', [[Every op that runs is counted with its operands, the path (float32, int8, fallback, …), the kernel and, for a
fallback, the reason. quant.log shows the counts, quant.log 'reset' shows them and starts anew; x:explain is the line of the
ledger that made x.]],
	[[quant.log 'reset'
y = tensor{1,2}:quantize 'int8' + 1
print(quant.log():where{path='fallback'}.op)  --> add]])

concept('broadcasting', [[Two tensors of different shapes meet as in NumPy: shapes are aligned at the last axis, and an axis of size 1 (or
a missing one) is repeated. A number goes with everything.]],
	[[print(tensor{{1},{2}} + tensor{10,20})  --> float32(2, 2)
--> 11 21
--> 12 22]])

concept('promotion', [[The dtype of a result of two: bool < integers < float16/bfloat16 < float32 < float64. float16 with bfloat16 gives
float32; of two integers the wider; of one width, signed and unsigned give the next wider signed. A Lua integer keeps the
dtype of an integer tensor, a Lua float makes it float32. Plain integers wrap, / gives float32, // and % floor. x:to(dtype)
casts: it rounds half to even and saturates; it never quantizes.]],
	[[print((tensor{1, dtype='int8'} + tensor{1, dtype='uint8'}):dtype())  --> int16
print((tensor{1, dtype='int8'} + 1):dtype(), (tensor{1, dtype='int8'} + 1.5):dtype())  --> int8 float32]])

concept('random', [[All random numbers come from tensor.seed(n): the same seed and number of threads give the same bits, on every
kernel. Without a seed the numbers of a session are the same each time, too. math.random is Lua's own and independent.]],
	[[tensor.seed(1)
a = tensor.rand(3)
tensor.seed(1)
print(a:eq(tensor.rand(3)):all():item())  --> true]])

concept('errors', [[A wrong call is a Lua error with one line: function, argument, what was wanted and what was given, with shapes and
dtypes, at the position of the calling line. Names that are unknown come with the nearest known one. pcall catches errors as
always; tensors stay as they were.]],
	[[print(pcall(tensor.zeros, {2, dtyp='int8'}))  --> false zeros: unknown option 'dtyp'; did you mean 'dtype'?...]])

concept('options', [[Sizes and operands are given by position, everything else by name in one table: tensor.zeros{2, 3, dtype='int8'},
x:sum{axis=1, keep=true}. A table or text that stands alone needs no parentheses: x:quantize 'int8'. An unknown name is an
error.

From outside: --threads, --kernel, --data and others, each also as an environment variable, QUOLL_THREADS; `quoll --help`
lists them.]],
	[[print(tensor{{1,2},{3,4}}:sum{axis=1}:totable()[2])  --> 6.0]])

concept('files', [[tensor.load and tensor.save take the format from the ending of the name: .npy .npz .safetensors .png, and to be read also idx
and .jpg; help 'npy' and so on. Files are replaced as a whole or not at all; a damaged one is an error of one line. Quantized
tensors keep their scales in .safetensors. Reports are saved by report:save, figures by file=.]],
	[[tensor.save('x.npy', tensor{1,2,3})
print(tensor.load 'x.npy':sum():item())  --> 6.0
os.remove 'x.npy']])

concept('figure', [[What plot.<kind>{…} and report:plot return. In a script figure:show() draws it, and print(figure) says what
it is. The prompt shows it: as a picture in terminals that take the graphics of
kitty, iTerm2 or sixel, else drawn with characters; QUOLL_PLOT chooses. figure:save writes a file by its ending, file= in the
call does so at once, figure:text gives the characters.]],
	[[fig = plot.line{{1, 4, 9}, title='squares'}
print(#fig:text() > 0)  --> true]])

doc {name = 'collectgarbage', usage = "collectgarbage()  collectgarbage 'count'  collectgarbage(mode)", text = [[Lua's own function: runs the collector, returns Lua's
memory in KiB ('count', without the tensors), or sets how it works: 'incremental' (the default), 'generational', 'stop', 'restart'.
These set the pace for Lua's own data. Tensors have a pace of their own, the same in every mode and also after 'stop': see memory.]],
	example = [[collectgarbage 'stop'
for i = 1, 100 do local x = tensor.zeros(1000000) end
print(tensor.memory().now < 64 << 20)  --> true
collectgarbage 'restart']]}

concept('memory', [[A tensor is freed when the collector finds it unused. It runs each time that tensors hold 1 MiB and some more (four
to twelve times the size of Lua's own data, and an eighth of what they held) than after its last run, in every mode of collectgarbage.
local t <close> = … frees a tensor at the end of the block. tensor.memory() reports the bytes in use and their peak, x:nbytes() those of one tensor, who() those of
all variables, and --memory sets a limit, which is an ordinary error when reached.]],
	[[x = tensor.zeros(1000)
print(x:nbytes(), tensor.memory().now >= 4000)  --> 4000 true]])

concept('notebook', [[A Lua file whose comments cut it into cells is a notebook: `-- %%` begins a cell of code, `-- %% Title tags=["skip"]` one
with a title and metadata, `-- %% [markdown]` a text whose lines are comments, with $formulas$, tables and pictures. The file stays
a Lua script, and what it says beside `-->` is a test: `quoll test nb.lua`.

`quoll run nb.lua` runs the cells as inputs of the prompt and keeps what they show beside the file; --html, --ipynb and --md write it
down, --param name=value sets what the cell tagged parameters assigns, --watch runs again what changed. `quoll convert` goes between
.lua, .ipynb, .html and .md without running; Jupyter with Jupytext opens the .lua as it is. `quoll run --help` tells the rest.]],
	[[file = io.open('nb.lua', 'w'):write('-- %% [markdown]\n-- # Hello\n-- %%\nprint(1 + 1)\n'):close()
dofile 'nb.lua'  --> 2
os.remove 'nb.lua']])

concept('display', [[Notebooks, exported pages and Jupyter show a value in the richest form that it has: figures as pictures, tensors, reports and
models as tables, everything else as the prompt does. A class of your own gives its forms by the metafield __mime, a function of the
value that returns texts by mime type: text/plain, text/html, text/markdown, image/svg+xml, or image/png as bytes. Exported pages take
plain tables and words of HTML and show other HTML as text. __tostring is what the prompt shows.]],
	[[swatch = setmetatable({colour = 'teal'}, {__name = 'swatch', __tostring = function(s) return s.colour end, __mime = function(s)
  return {['image/svg+xml'] = '<svg width="40" height="40"><rect width="40" height="40" fill="' .. s.colour .. '"/></svg>'}
end})
print(swatch)  --> teal]])

concept('sandbox', [[Running a script is running a program: it may do all that you may. Loading data and opening a notebook run nothing.

`quoll --sandbox out:data script.lua` runs one that you do not trust. Linux keeps it (Landlock and seccomp), for all threads and for
good: files are read and written below the folders named only, and in a folder for temporary files that goes with the process; the script
and the files named after it, the data folder and the system's libraries and fonts are read. No program is started, no socket opened, no
other process gets a signal and nothing is typed into the terminal, so
!commands, sweeps (except with jobs=0), Jupyter and compiling what was exported do not work. In Lua os.execute, os.remove, os.rename, os.exit, io.popen,
package.loadlib, most of debug, modules in C and bytecode are errors, and os.getenv knows a few names. --memory is half of the machine's
unless it is given; --time N ends the program after N seconds, with exit code 124. A kernel that cannot do this is an error.]],
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


Typed text is coloured as Lua; the bracket that belongs to the one at the cursor is marked; in grey stands the newest earlier
input that begins the same way. Pasted text is one edit and runs nothing. Earlier inputs are kept in
$XDG_STATE_HOME/quoll/history (~/.local/state without it), each once, but none that begins with a blank.

With "set editing-mode vi" in ~/.inputrc, or %set editing_mode vi, Escape leads to vi's normal mode: h l w b e 0 ^ $ j k G gg
f F t T ; , % with d c y and counts, x X s S D C Y p P r ~ J u, i a I A o O, / searches, Enter runs. NO_COLOR leaves all
colours out; with TERM=dumb or a pipe there is no editor and no escape byte.]],
	[[help 'keys']])
