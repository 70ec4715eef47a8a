-- SPDX-License-Identifier: MIT
-- Jupyter notebooks: reading 4.0 to 4.5, writing as the nbformat library does, and what is wrong with a broken file. NB is
-- the text that nbformat 5.10.4 wrote of these cells.
local internal = debug.getregistry()['quoll.internal']
local ipynb, percent, json = internal.import 'interp/notebook/ipynb', internal.import 'interp/notebook/percent', internal.import 'interp/prelude/json_write'

local NB = [=[
{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "a1",
   "metadata": {},
   "source": [
    "# Ä\n",
    "\n",
    "b"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 2,
   "id": "b2",
   "metadata": {
    "list": [
     null,
     1.5,
     {}
    ],
    "tags": [
     "x"
    ]
   },
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "a\n",
      "b\n"
     ]
    },
    {
     "data": {
      "application/json": {
       "a": [
        1
       ]
      },
      "image/png": "iVBORw0KGgo=",
      "text/plain": [
       "5"
      ]
     },
     "execution_count": 2,
     "metadata": {},
     "output_type": "execute_result"
    },
    {
     "ename": "error",
     "evalue": "no",
     "output_type": "error",
     "traceback": [
      "no",
      "at"
     ]
    }
   ],
   "source": [
    "%time x\n",
    "y"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "c3",
   "metadata": {},
   "outputs": [],
   "source": []
  }
 ],
 "metadata": {
  "kernelspec": {
   "display_name": "Quoll",
   "language": "lua",
   "name": "quoll"
  },
  "language_info": {
   "name": "lua"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
]=]

it('reads and writes the same text', function()
	local nb = ipynb.read(NB, 'a.ipynb')
	assert(ipynb.write(nb) == NB)
	assert(#nb.cells == 3 and nb.cells[1].source == '# Ä\n\nb' and nb.cells[2].outputs[1].text == 'a\nb\n' and
		nb.cells[2].outputs[2].data['text/plain'] == '5' and nb.cells[2].execution_count == 2)
end)
it('reads older notebooks, texts in one piece, and makes ids', function()
	local old = [[{"nbformat": 4, "nbformat_minor": 0, "metadata": {}, "cells": [{"cell_type": "code", "metadata": {"trusted": true},
		"source": "x\r\ny", "execution_count": null, "outputs": [{"output_type": "display_data", "data": {"text/html": "<b>", "x/y": ["a", "b"]},
		"metadata": {}}]}, {"cell_type": "code", "metadata": {}, "source": ["x\n", "y"], "outputs": [], "execution_count": 1}]}]]
	local nb = ipynb.read(old, 'a.ipynb')
	assert(nb.cells[1].source == 'x\ny' and nb.cells[2].source == 'x\ny' and nb.cells[1].outputs[1].data['x/y'] == 'ab')
	local text = ipynb.write(nb)
	local ids = {}
	for id in text:gmatch '"id": "(%x+)"' do ids[id] = true end
	assert(next(ids, next(ids)) and text == ipynb.write(ipynb.read(text, 'b')) and not text:find 'trusted')
end)
it('keeps a percent file through a notebook', function()
	for _, text in ipairs {'-- SPDX\n-- %% [markdown]\n-- a\n\n-- %% T tags=["a"]\nx = 1\n\n\n-- %%\ny\n', '--%%\nx\n\n-- ---\n', 'x = 1\n',
		'-- ---\n-- title: a\n-- jupyter:\n--   kernelspec:\n--     name: other\n-- ---\n\n-- %% b=2 a=1\n-- %who\n', ''} do
		local through = percent.write(ipynb.read(ipynb.write(percent.read(text, 'a.lua')), 'a.ipynb'))
		assert(through == text, through)
	end
	local nb = ipynb.read(ipynb.write(percent.read('--%%\nx\n', 'a.lua')), 'a.ipynb')
	nb.cells[1].source = 'y'
	assert(percent.write(nb) == '-- %%\ny\n')
end)
it('writes the tag that Jupyter knows for `raises`, and takes it away again', function()
	local function tags(text) -- of the cell in the .ipynb, of the cell that is read back, of the percent file
		local written = ipynb.write(percent.read('-- %% tags=' .. text .. '\nx\n', 'a.lua'))
		local nb = ipynb.read(written, 'a.ipynb')
		return table.concat(json.read(written).cells[1].metadata.tags, ' '), table.concat(nb.cells[1].metadata.tags, ' '), percent.write(nb)
	end
	for given, wanted in pairs {['["raises"]'] = {'raises-exception raises', 'raises'}, ['["a", "raises", "b"]'] = {'a raises-exception raises b', 'a raises b'},
		['["raises-exception"]'] = {'raises-exception', 'raises-exception'}, ['["raises", "raises-exception"]'] = {'raises raises-exception', 'raises raises-exception'},
		['["raises", "raises"]'] = {'raises-exception raises raises', 'raises raises'}, ['[]'] = {'', ''}} do
		local written, read, back = tags(given)
		assert(written == wanted[1] and read == wanted[2] and back == '-- %% tags=' .. given .. '\nx\n', given .. written .. read .. back)
	end
	local nb = percent.read('-- %% tags=["raises"]\nx\n', 'a.lua')
	ipynb.write(nb)
	assert(#nb.cells[1].metadata.tags == 1, 'writing changes nothing')
	for text, fails in pairs {['["raises"]'] = 'must', ['["raises-exception"]'] = 'may', ['["raises", "raises-exception"]'] = 'must', ['[]'] = 'nil'} do
		local file = os.tmpname()
		internal.write_file(file .. '.lua', '-- %% tags=' .. text .. '\nx\n')
		assert(tostring(internal.import 'interp/notebook/notebook'.fails(internal.import 'interp/notebook/notebook'.open(file .. '.lua').cells[1])) == fails)
		os.remove(file .. '.lua')
	end
end)
it('keeps attached pictures', function()
	local nb = ipynb.read([[{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "markdown", "id": "a", "metadata": {},
		"source": "![a](attachment:p.png)", "attachments": {"p.png": {"image/png": "iVBORw0KGgo="}}}]}]], 'a')
	assert(ipynb.write(nb):find '"image/png": "iVBORw0KGgo="')
	nb.file, nb.cells[1].tags, nb.cells[1].index = 'a.ipynb', {}, 1
	assert(internal.import 'interp/notebook/html'(nb):find 'src="data:image/png;base64,iVBORw0KGgo="')
end)
it('reports what is wrong', function()
	local function cell(text) return '{"nbformat": 4, "metadata": {}, "cells": [' .. text .. ']}' end
	for text, message in pairs {
		['{'] = 'a.ipynb: wanted a notebook in JSON: wanted a name in quotes at byte 2, got the end',
		['[]'] = 'wanted a notebook with nbformat, cells and metadata, got other JSON', ['{}'] = 'got other JSON',
		['{"nbformat": 3, "cells": []}'] = 'wanted nbformat 4, got 3', ['{"nbformat": 4, "cells": 1}'] = 'cells: wanted a list, got 1',
		[cell '{"cell_type": "heading", "source": ""}'] = "cell 1: wanted code, markdown or raw, got 'heading'", [cell '5'] = 'cell 1: wanted code',
		[cell '{"cell_type": "code", "source": 5}'] = 'cell 1: source: wanted text, got 5',
		[cell '{"cell_type": "code", "source": ["a", 5]}'] = 'cell 1: source: line 2: wanted text, got 5',
		[cell '{"cell_type": "code", "source": "", "metadata": [1]}'] = 'cell 1: metadata: wanted an object, got table',
		[cell '{"cell_type": "code", "source": "", "outputs": [{"output_type": "pyout"}]}'] = "cell 1: output 1: wanted stream, display_data, execute_result or error, got 'pyout'",
		[cell '{"cell_type": "code", "source": "", "outputs": [{"output_type": "stream"}]}'] = 'cell 1: output 1: wanted text, got nil',
		[cell '{"cell_type": "code", "source": "", "outputs": [{"output_type": "display_data", "data": {"text/plain": [{}]}}]}'] = 'text/plain: line 1: wanted text',
		[('['):rep(100)] = 'at most 64 levels', ['\0'] = 'wanted a value',
	} do
		local good, got = pcall(ipynb.read, text, 'a.ipynb')
		assert(not good and got:find(message, 1, true), text .. ': ' .. tostring(got))
	end
end)
it('writes JSON', function()
	for value, want in pairs {[1] = '1', [0.1] = '0.1', [1e300] = '1e+300', ['a"\\\n\1é\255'] = [["a\"\\\n\u0001é�"]], [true] = 'true',
		[json.NULL] = 'null', [json.array()] = '[]', [{}] = '{}', [{b = 1, a = {1, {}}}] = '{"a": [1, {}], "b": 1}', [1 / 0] = 'null'} do
		assert(json.write(value) == want and json.write(2.0) == '2.0', json.write(value))
		if want ~= 'null' and not want:find '\u{FFFD}' then assert(json.write(json.read(want)) == want) end
	end
end)
