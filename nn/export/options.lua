-- SPDX-License-Identifier: MIT
-- The options of g:export and m:export.
return {
	{'dir', 'text', 'folder; created if missing'}, {'name', 'text', "of files and functions (default 'model')"}, {'batch', 'integer', 'inputs in one pass (default 1)'},
	{'profile', 'text', 'regular expression: nodes to time'}, {'samples', 'any', 'inputs of the self-test: a tensor, a list with one per input, or these by variant (default: random)'},
	{'vectors', 'positive integer', 'number of inputs of the self-test (default 2)'},
	{'input', 'text', 'float int8 uint8: type of the inputs (default: as in the graph)'},
	{'output', 'text', 'float int8 uint8: type of the results (default: as in the graph)'},
	{'layout', 'text', "of images at inputs and outputs: nchw (channels first, default) or nhwc"},
	{'target', 'text', 'avx512vnni avx2 neon armv7e-m: instructions for products of 8-bit codes (default: plain C)'},
	{'project', 'text', 'make cmake zephyr arduino: files for a build system (default make)'},
	{'cc', 'text', "compiler command, such as 'arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -Os', to measure flash and stack"},
	{'max_ram', 'positive integer', 'bytes: an error when the arena (and the stack, with cc=) needs more'},
	{'max_flash', 'positive integer', 'bytes: an error when the constants (and the code, with cc=) need more'},
	{'rounding', 'text', 'float single double: rule of integer results (default: that of the graph)'},
	{'variants', 'list', 'specs, or name -> spec, options or graph'}, {'blob', 'true or false', 'weights in a separate file (default false)'},
	{'onnx', 'text', 'name of an ONNX file, which is written in place of C'},
	{'form', 'text', 'ONNX: float, qdq, qoperator or integer (default: qdq for a graph with codes, else float)'},
	{'opset', 'positive integer', 'ONNX: version of the ops, 13 to 25 (default 17, or what the forms in use need)'},
	{'external', 'true or false', 'ONNX: tensors in a file beside it, <onnx>.data (default: only above 2 GiB)'},
}
