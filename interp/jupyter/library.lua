-- SPDX-License-Identifier: MIT
-- The global `jupyter`: values shown below a cell of a notebook, changed and cleared again. At the prompt and in scripts
-- the same calls show values as text.
local jupyter, internal = ...
local base = internal.import 'interp/prelude/base'
local doc, fail, describe = base.doc, base.fail, base.describe

doc {name = 'jupyter', kind = 'module', usage = 'jupyter.display, jupyter.update, jupyter.clear',
	text = [[Quoll as the kernel of Jupyter notebooks: `quoll kernel install` makes it known to JupyterLab, the classic
notebook, nbconvert and consoles; libzmq5 is wanted at run time. A cell means what an input of the prompt means: its last
expression is shown, local variables stay, ?name and %words work. Figures are shown as PNG (fig:save 'f.svg' writes
another form), reports and tensors as tables. io.read asks the front end for a line. A class gives forms of its own by the metafield __mime.]],
	example = "jupyter.display(tensor{1, 2})  --> float32(2)  1  2"}

local display_doc = doc {name = 'jupyter.display', usage = 'jupyter.display(value, {id=})',
	text = [[Shows a value where the cell is run: below it in a notebook, as at the prompt elsewhere. With an id, jupyter.update
replaces what is shown there. Returns the value.]],
	options = {{'id', 'text', 'name of the output, for jupyter.update'}},
	example = "jupyter.display 'half'  --> \"half\""}

doc {name = 'jupyter.update', usage = 'jupyter.update(id, value)',
	text = [[Replaces what jupyter.display has shown under this id. Where nothing can be replaced, outside of Jupyter, the
value is shown as it is. Returns the value.]],
	example = "jupyter.update('bar', 3)  --> 3"}

doc {name = 'jupyter.clear', usage = 'jupyter.clear(wait)',
	text = [[Clears the output of the cell; with wait=true when the next output comes, so that nothing flickers. Returns
whether there is a front end that does it: false at the prompt and in scripts.]],
	example = "print(jupyter.clear())  --> false"}

local function show(value, id, update)
	if internal.kernel then
		internal.kernel.display(value, id, update)
	elseif type(value) == 'userdata' and (debug.getmetatable(value) or {}).__show and value.show then
		value:show()
	else
		print(internal.import 'interp/prelude/show'(value))
	end
	return value
end

function jupyter.display(value, options)
	return show(value, base.options(display_doc, options).id, false)
end

function jupyter.update(id, value)
	if type(id) ~= 'string' then fail('update: id: wanted text, got %s', describe(id)) end
	return show(value, id, true)
end

function jupyter.clear(wait)
	if internal.kernel then internal.kernel.clear(wait) end
	return internal.kernel ~= nil
end
