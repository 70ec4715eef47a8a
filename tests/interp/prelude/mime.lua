-- SPDX-License-Identifier: MIT
-- The forms in which values go into notebooks. base64: the vectors of RFC 4648, section 10.
local mime = debug.getregistry()['quoll.internal'].import 'interp/prelude/mime'

for text, coded in pairs {[''] = '', f = 'Zg==', fo = 'Zm8=', foo = 'Zm9v', foob = 'Zm9vYg==', fooba = 'Zm9vYmE=',
	foobar = 'Zm9vYmFy', ['\255\254\0'] = '//4A'} do
	assert(mime.base64(text) == coded and mime.from_base64(coded) == text)
end
assert(mime.from_base64 'Zm9v\nYmFy\n' == 'foobar')
for _, wrong in ipairs {'Z', 'Zm9', 'Zm=v', '====', 'Zm9v!'} do assert(mime.from_base64(wrong) == nil) end

print(mime.escape [[<a href="x" title='y'>&]])  --> &lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;
print(mime.escape 'a\0b\27[1mc\255\192\175 é')  --> a�b�[1mc��� é

-- Forms as one line: kind = text.
local function forms(value, wanted)
	local kinds, bundle = {}, mime.bundle(value, wanted)
	for kind in pairs(bundle) do kinds[#kinds + 1] = kind end
	table.sort(kinds)
	return table.concat(kinds, ' '), bundle
end

it('shows plain values as the prompt does', function()
	assert(mime.bundle 'a\n'['text/plain'] == '"a\\n"' and mime.bundle(6)['text/plain'] == '6')
	assert(mime.bundle{1, {2}}['text/plain'] == '{1, {2}}' and forms(nil) == 'text/plain')
end)
it('makes tables of tensors', function()
	local _, b = forms(tensor{{1, 2}, {3, 4}})
	assert(b['text/html'] == '<table class="tensor"><caption>float32(2, 2)</caption><tbody><tr><td>1</td><td>2</td></tr>' ..
		'<tr><td>3</td><td>4</td></tr></tbody></table>', b['text/html'])
	b = select(2, forms(tensor.ones(40, 40):quantize 'int8/1'))['text/html']
	assert(b:find '<caption>int8%(40, 40%) symmetric, axis 1, scale' and b:find '<td>…</td>' and
		b:find '<tr><td colspan="7">…</td></tr>', b)
	b = select(2, forms(tensor.zeros(300)))['text/html']
	assert(select(2, b:gsub('<td>', '')) == 13 and select(2, b:gsub('<tr>', '')) == 1, b)
	b = select(2, forms(tensor.zeros(2, 2, 3)))['text/html']
	assert(b:find('<tr><th colspan="3">[2, :, :]</th></tr>', 1, true), b)
	assert(forms(tensor{1}:sum()) == 'text/plain')
	assert(select(2, forms(tensor.zeros(0, 3)))['text/plain'] == 'float32(0, 3)')
end)
it('makes tables of reports and models', function()
	local kinds, b = forms(report{{a = 1, b = '<x>'}, note = 'n&m'})
	assert(kinds == 'text/html text/plain' and b['text/html']:find('<td>&#60;x&#62;</td><td class="n">1</td>', 1, true) and
		b['text/html']:find('<p>n&#38;m</p>', 1, true), b['text/html'])
	b = report()
	for i = 1, 500 do b:add{i = i} end
	b = mime.bundle(b)['text/html']
	assert(select(2, b:gsub('<tr>', '')) == 201 and b:find '<p>200 of 500 rows</p>', b)
	b = mime.bundle(nn.Sequential{nn.Linear(3, 4)})
	assert(b['text/html']:find '<td>linear1</td>' and b['text/plain']:find '^Sequential')
end)
it('makes pictures of figures', function()
	local fig = plot.line{{1, 2}, title = 'a<b'}
	if not pcall(fig.svg, fig) then skip 'no plplot' end
	local kinds, b = forms(fig)
	assert(kinds == 'image/svg+xml text/plain' and b['image/svg+xml']:find '<svg' and b['text/plain']:find '^line figure')
	b = mime.bundle(fig, {png = true})['image/png']
	assert(mime.from_base64(b):sub(1, 8) == '\137PNG\r\n\26\n')
	b = mime.bundle(fig, {png = 'only'})
	assert(b['image/png'] and not b['image/svg+xml'] and b['text/plain']:find '^line figure')
end)
it('asks the class', function()
	local class = {__name = 'point', __mime = function(p)
		return {['text/html'] = '<b>' .. p.x .. '</b>', ['image/png'] = '\137PNG\r\n\26\n'}
	end}
	local kinds, b = forms(setmetatable({x = 5}, class))
	assert(kinds == 'image/png text/html text/plain' and b['text/html'] == '<b>5</b>' and b['image/png'] == 'iVBORw0KGgo=')
	class.__mime = function() error('no form', 0) end
	assert(select(2, forms(setmetatable({}, class)))['text/plain']:find '__mime failed: no form$')
	class.__mime = function() return {['text/html'] = 5} end
	kinds, b = forms(setmetatable({}, class))
	assert(kinds == 'text/plain' and b['text/plain']:find "wanted texts by mime type, got 'text/html' = 5$", b['text/plain'])
	class.__mime = function() return 7 end
	assert(mime.bundle(setmetatable({}, class))['text/plain']:find 'wanted a table, got number')
end)
