-- SPDX-License-Identifier: MIT
-- The one script of the page of a sweep: a click on the head of a column, or Enter, sorts the table by it, a second one the other way
-- round. Numbers (also 91.2 ± 0.3) come before text, cells without a value last. The page's policy names this script by its hash, so
-- nothing else can run.
local _, internal = ...
local mime = internal.import 'interp/prelude/mime'
local sort = {}

local SCRIPT = [[
'use strict';
for (const table of document.querySelectorAll('table.sort')) {
	const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
	const rank = text => text === '-' ? 2 : /^-?(\d|inf|nan)/.test(text) && !isNaN(number(text)) ? 0 : 1;
	const number = text => text.startsWith('-inf') ? -Infinity : text.startsWith('inf') ? Infinity : parseFloat(text);
	const sort = i => {
		const down = heads[i].getAttribute('aria-sort') === 'ascending';
		const rows = [...body.rows].map((row, at) => ({row, at, text: row.cells[i].textContent}));
		const numbers = rows.every(one => rank(one.text) !== 1);
		rows.sort((a, b) => {
			const last = (rank(a.text) === 2) - (rank(b.text) === 2);
			if (last) return last;
			const order = numbers ? number(a.text) - number(b.text) || 0 : a.text.localeCompare(b.text);
			return (down ? -order : order) || a.at - b.at;
		});
		heads.forEach(head => head.removeAttribute('aria-sort'));
		heads[i].setAttribute('aria-sort', down ? 'descending' : 'ascending');
		body.append(...rows.map(one => one.row));
	};
	heads.forEach((head, i) => {
		head.tabIndex = 0;
		head.addEventListener('click', () => sort(i));
		head.addEventListener('keydown', event => { if (event.key === 'Enter') sort(i); });
	});
}
]]

local function bytes_of(hex) return (hex:gsub('%x%x', function(two) return string.char(tonumber(two, 16)) end)) end

-- The element, and its hash as a policy names it.
sort.element = '<script>' .. SCRIPT .. '</script>\n'
sort.source = "'sha256-" .. mime.base64(bytes_of(internal.sha256(SCRIPT))) .. "'"

return sort
