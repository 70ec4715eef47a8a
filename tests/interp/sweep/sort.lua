-- SPDX-License-Identifier: MIT
-- The script that sorts, in a browser: numbers by value, text by the alphabet, cells without a value last; and under the page's policy.
local internal = debug.getregistry()['quoll.internal']
local sort = internal.import 'interp/sweep/sort'
print(sort.element:match '^<script>' ~= nil, select(2, sort.element:gsub('</script>', '')))  --> true 1
print(sort.source:match "^'sha256%-[%w+/]+='$" ~= nil)                                        --> true

local browser = io.popen('command -v chromium'):read 'l'
if not browser then skip 'chromium is not installed' end
local page, file = internal.import 'interp/prelude/report_files', os.tmpname() .. '.html'
local rows = report{columns = {'x', 'name', 'mean', 'mean ±'}, {10, 'b', 2.5, 0.1}, {9, 'c', 10, 0.2}, {name = 'a', mean = -1}, {-2, 'd'}}
local list = {columns = rows:columns(), rows = {rows[1], rows[2], rows[3], rows[4]}}
local click = [=[<script>
const t = document.querySelector('table'), said = [];
for (const [column, times] of [[0, 1], [0, 2], [1, 1], [2, 1]]) {
	for (let i = 0; i < times; i++) t.tHead.rows[0].cells[column].click();
	said.push([...t.tBodies[0].rows].map(row => row.cells[1].textContent).join(''));
}
document.title = said.join(' ');
</script>]=]
internal.write_file(file, page.html_head 'sort':gsub('<meta http%-equiv[^>]*>', '') .. page.html_table(list, nil, nil, 'sort') .. sort.element .. click .. '</body></html>')
local pipe = io.popen(('timeout 60 %s --headless --no-sandbox --disable-gpu --dump-dom file://%s 2>/dev/null'):format(browser, file))
local text = pipe:read 'a'
pipe:close()
os.remove(file)
-- x up; x again up and down (it was up: down, up); name; mean
print(text:match '<title>(.-)</title>')  --> dcba dcba abcd abcd
