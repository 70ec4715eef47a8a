-- SPDX-License-Identifier: MIT
-- Formulas: a subset of TeX as MathML Core, which browsers draw without any script. Known are fractions, roots, sub- and
-- superscripts, Greek, operators and relations, large operators with limits, accents, \left … \right, text, fonts,
-- matrices, cases and aligned lines. An unknown command appears as it is written.
local _, internal = ...
local mime = internal.import 'interp/prelude/mime'

local DEEPEST = 60

local function words(text, into)
	for name, code in text:gmatch '(%a+)%s+(%S+)' do into[name] = code end
	return into
end

local LETTERS = words([[alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ
	mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ
	Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω infty ∞ partial ∂ nabla ∇ ell ℓ hbar ℏ emptyset ∅ Re ℜ Im ℑ aleph ℵ]], {})
local OPERATORS = words([[times × cdot ⋅ div ÷ pm ± mp ∓ ast ∗ star ⋆ circ ∘ bullet ∙ oplus ⊕ otimes ⊗ odot ⊙ le ≤ leq ≤ ge ≥ geq ≥ ne ≠
	neq ≠ approx ≈ equiv ≡ sim ∼ simeq ≃ cong ≅ propto ∝ ll ≪ gg ≫ in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇
	cup ∪ cap ∩ setminus ∖ land ∧ wedge ∧ lor ∨ vee ∨ neg ¬ lnot ¬ forall ∀ exists ∃ to → rightarrow → leftarrow ←
	leftrightarrow ↔ Rightarrow ⇒ implies ⟹ Leftarrow ⇐ iff ⟺ Leftrightarrow ⇔ mapsto ↦ uparrow ↑ downarrow ↓ ldots … dots …
	cdots ⋯ vdots ⋮ ddots ⋱ mid ∣ parallel ∥ perp ⊥ langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ lVert ‖ rVert ‖
	Vert ‖ vert | prime ′ colon : lbrace { rbrace }]], {})
local LARGE = words([[sum ∑ prod ∏ int ∫ iint ∬ oint ∮ bigcup ⋃ bigcap ⋂ coprod ∐]], {})
local ACCENTS = words([[hat ^ widehat ^ bar ¯ overline ¯ tilde ~ widetilde ~ vec → dot ˙ ddot ¨ check ˇ]], {})
local SPACES = {[','] = '0.17em', [':'] = '0.22em', [';'] = '0.28em', ['!'] = '-0.17em', [' '] = '0.33em', quad = '1em',
	qquad = '2em', enspace = '0.5em', thinspace = '0.17em'}
local FUNCTIONS, LIMITS = {}, {}
for name in ([[log ln lg exp sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan det dim ker deg arg gcd Pr mod]])
	:gmatch '%a+' do
	FUNCTIONS[name] = true
end
for name in ('lim max min sup inf argmax argmin limsup liminf'):gmatch '%a+' do FUNCTIONS[name], LIMITS[name] = true, true end
local FONTS = {mathrm = 'normal', mathbf = 'bold', mathit = 'italic', boldsymbol = 'bold', mathsf = 'normal', mathtt = 'normal',
	mathcal = 'italic', mathbb = 'bb', operatorname = 'normal', bm = 'bold'}
local DOUBLE = {C = 'ℂ', H = 'ℍ', N = 'ℕ', P = 'ℙ', Q = 'ℚ', R = 'ℝ', Z = 'ℤ', E = '𝔼'}
local FENCES = {matrix = {}, pmatrix = {'(', ')'}, bmatrix = {'[', ']'}, Bmatrix = {'{', '}'}, vmatrix = {'|', '|'},
	Vmatrix = {'‖', '‖'}, cases = {'{', ''}, aligned = {}, align = {}, ['align*'] = {}, array = {}, gathered = {}, split = {}}

local function element(name, inner, attributes)
	return ('<%s%s>%s</%s>'):format(name, attributes or '', inner, name)
end

local function token(name, text, attributes) return element(name, mime.escape(text), attributes) end

local function operator(text, attributes) return token('mo', text, attributes) end

---------------------------------------------------------------- tokens

-- {kind, text}: 'command' (name), 'char', and the signs { } ^ _ & and the line break '\\'.
local function scan(text)
	local list, at = {}, 1
	while at <= #text do
		local name, stop = text:match('^\\(%a+%*?)()', at)
		if name and name:sub(-1) == '*' and not name:find '^align' then name, stop = name:sub(1, -2), stop - 1 end
		if name then
			list[#list + 1] = {'command', name, at = stop}
		elseif text:find('^\\\\', at) then
			stop = at + 2
			list[#list + 1] = {'\\\\', '\\\\'}
		elseif text:find('^\\', at) then
			stop = utf8.offset(text, 2, math.min(at + 1, #text)) or #text + 1
			list[#list + 1] = {'command', text:sub(at + 1, stop - 1), at = stop}
		elseif text:find('^%%', at) then
			stop = (text:find('\n', at, true) or #text) + 1
		elseif text:find('^[{}^_&]', at) then
			stop = at + 1
			list[#list + 1] = {text:sub(at, at), text:sub(at, at)}
		elseif text:find('^%s', at) then
			stop = text:match('^%s+()', at)
		else
			local digits = text:match('^%d+%.?%d*', at)
			stop = digits and at + #digits or utf8.offset(text, 2, at) or #text + 1
			list[#list + 1] = {'char', text:sub(at, stop - 1)}
		end
		at = stop
	end
	return list
end

---------------------------------------------------------------- grammar

local parser = {}
parser.__index = parser

function parser:peek() return self.list[self.at] or {'end', ''} end

function parser:take()
	local found = self:peek()
	self.at = self.at + 1
	return found
end

-- Elements up to one of the kinds in `stops`, which is not taken.
function parser:row(stops)
	local out = {}
	self.depth = self.depth + 1
	while not stops[self:peek()[1]] and self:peek()[1] ~= 'end' and
		not (self:peek()[1] == 'command' and stops['\\' .. self:peek()[2]]) do
		out[#out + 1] = self:scripted()
	end
	self.depth = self.depth - 1
	return out
end

local function group(list)
	if #list == 1 then return list[1] end
	return element('mrow', table.concat(list))
end

-- An argument: a group in braces or one element.
function parser:argument()
	if self:peek()[1] ~= '{' then
		if self:peek()[1] == 'end' then return element('mrow', '') end
		return (self:atom())
	end
	self:take()
	local inner = self:row {['}'] = true}
	self:take()
	return group(inner)
end

-- The letters of an argument, as they are: of \text{…} with its blanks.
function parser:raw_argument()
	local first = self.list[self.at - 1]
	local from = first and first.at or 1
	local inner = self.text:match('^%s*(%b{})', from)
	if not inner then return '' end
	local depth = 0
	repeat
		local kind = self:take()[1]
		depth = depth + (kind == '{' and 1 or kind == '}' and -1 or 0)
	until depth == 0 or kind == 'end'
	return inner:sub(2, -2)
end

local function font(name, text)
	local kind = FONTS[name]
	if kind == 'bb' then return token('mi', (text:gsub('%a', DOUBLE)), ' mathvariant="normal"') end
	if kind == 'bold' then return token('mi', text, ' mathvariant="normal" class="b"') end
	return token('mi', text, kind == 'normal' and ' mathvariant="normal"' or '')
end

-- Rows and cells of an environment, whose \begin{name} is taken, up to its \end.
function parser:environment(name)
	local rows, row, fence = {}, {}, FENCES[name] or {}
	if name == 'array' then self:argument() end -- how the columns stand
	while self:peek()[1] ~= 'end' do
		row[#row + 1] = element('mtd', table.concat(self:row {['&'] = true, ['\\\\'] = true, ['\\end'] = true}))
		local stop = self:take()
		if stop[1] ~= '&' then
			rows[#rows + 1] = element('mtr', table.concat(row))
			row = {}
		end
		if stop[1] == 'command' then
			self:raw_argument()
			break
		end
	end
	local class = name == 'cases' and ' class="left"' or name:find '^align' and ' class="align"' or ''
	local body = element('mtable', table.concat(rows), class)
	if not fence[1] then return body end
	return element('mrow', operator(fence[1]) .. body .. (fence[2] ~= '' and operator(fence[2]) or ''))
end

local function delimiter(t)
	local text = t[1] == 'command' and (OPERATORS[t[2]] or t[2]) or t[2]
	return text == '.' and '' or text == '<' and '⟨' or text == '>' and '⟩' or text
end

local COMMANDS = {
	frac = function(p) return element('mfrac', p:argument() .. p:argument()) end,
	sqrt = function(p)
		if p:peek()[2] ~= '[' then return element('msqrt', p:argument()) end
		p:take()
		local degree = {}
		while p:peek()[2] ~= ']' and p:peek()[1] ~= 'end' do degree[#degree + 1] = p:scripted() end
		p:take()
		return element('mroot', p:argument() .. group(degree))
	end,
	left = function(p)
		local open = delimiter(p:take())
		local inner = table.concat(p:row {['\\right'] = true})
		p:take()
		local close = delimiter(p:take())
		return element('mrow', (open ~= '' and operator(open) or '') .. inner .. (close ~= '' and operator(close) or ''))
	end,
	begin = function(p)
		local name = p:raw_argument()
		if FENCES[name] then return p:environment(name) end
		return token('mtext', '\\begin{' .. name .. '}')
	end,
	binom = function(p)
		return element('mrow', operator '(' .. element('mfrac', p:argument() .. p:argument(), ' linethickness="0"') .. operator ')')
	end,
	stackrel = function(p)
		local above = p:argument()
		return element('mover', p:argument() .. above)
	end,
	underbrace = function(p) return element('munder', p:argument() .. operator '⏟'), true end,
	overbrace = function(p) return element('mover', p:argument() .. operator '⏞'), true end,
	underline = function(p) return element('munder', p:argument() .. operator '_') end,
}
COMMANDS.dfrac, COMMANDS.tfrac = COMMANDS.frac, COMMANDS.frac
for _, name in ipairs {'text', 'textrm', 'textbf', 'textit', 'texttt', 'mbox'} do
	COMMANDS[name] = function(p) return token('mtext', (p:raw_argument():gsub('%s', '\u{A0}'))) end
end
for name in pairs(FONTS) do
	COMMANDS[name] = function(p)
		local text = p:peek()[1] == '{' and p:raw_argument() or p:take()[2]
		if text:find '\\' then return element('mrow', table.concat(p:inner(text))) end
		return font(name, text)
	end
end
for name, sign in pairs(ACCENTS) do
	COMMANDS[name] = function(p) return element('mover', p:argument() .. operator(sign, ' stretchy="false"'), ' accent="true"') end
end
for _, name in ipairs {'displaystyle', 'textstyle', 'limits', 'nolimits', 'nonumber', 'big', 'Big', 'bigl', 'bigr', 'Bigl', 'Bigr'} do
	COMMANDS[name] = function() return '' end
end

-- A text of its own within this one.
function parser:inner(text)
	if self.depth > DEEPEST then return {token('mtext', text)} end
	local p = setmetatable({text = text, list = scan(text), at = 1, depth = self.depth + 1, display = self.display}, parser)
	return p:row {}
end

-- One element without its scripts; true when limits are above and below.
function parser:atom()
	local t = self:take()
	local kind, text = t[1], t[2]
	if self.depth > DEEPEST then return token('mtext', text) end
	if kind == '{' then
		local inner = self:row {['}'] = true}
		self:take()
		return group(inner)
	elseif kind == 'char' then
		if text:find '^%d' then return token('mn', text) end
		if text:find '^%a$' or text:find '^[\206-\207]' then return token('mi', text) end
		if text == '-' then text = '−' elseif text == '*' then text = '∗' elseif text == "'" then text = '′' end
		return operator(text, text:find '^[()%[%]|/]$' and ' stretchy="false"' or '')
	elseif kind ~= 'command' then
		return token('mtext', text)
	elseif COMMANDS[text] then
		return COMMANDS[text](self)
	elseif LETTERS[text] then
		return token('mi', LETTERS[text])
	elseif LARGE[text] then
		return operator(LARGE[text], ' largeop="true"'), self.display and text ~= 'int'
	elseif FUNCTIONS[text] then
		return token('mi', text), LIMITS[text] and self.display
	elseif SPACES[text] then
		return ('<mspace width="%s"></mspace>'):format(SPACES[text])
	elseif OPERATORS[text] then
		return operator(OPERATORS[text])
	elseif text:find '^[{}%%$#&_|]$' then
		return operator(text == '|' and '‖' or text, ' stretchy="false"')
	end
	return token('mtext', '\\' .. text)
end

-- An element with what is at its feet and head.
function parser:scripted()
	local base, limits = self:atom()
	local low, high
	while self:peek()[1] == '_' or self:peek()[1] == '^' do
		local sign = self:take()[1]
		self.depth = self.depth + 1
		local argument = self.depth > DEEPEST and element('mrow', '') or self:argument()
		self.depth = self.depth - 1
		if sign == '_' then low = low or argument else high = high or argument end
	end
	if base == '' and (low or high) then base = element('mrow', '') end
	local names = limits and {'munder', 'mover', 'munderover'} or {'msub', 'msup', 'msubsup'}
	if low and high then return element(names[3], base .. low .. high) end
	if low then return element(names[1], base .. low) end
	return high and element(names[2], base .. high) or base
end

-- MathML of a TeX formula; `display`: on a line of its own.
return function(tex, display)
	tex = mime.clean(tex)
	local p = setmetatable({text = tex, list = scan(tex), at = 1, depth = 0, display = display}, parser)
	local out = {}
	while p:peek()[1] ~= 'end' do
		local row = p:row {}
		table.move(row, 1, #row, #out + 1, out)
		if p:peek()[1] ~= 'end' then out[#out + 1] = token('mtext', p:take()[2]) end
	end
	return ('<math%s>%s</math>'):format(display and ' display="block"' or '', element('mrow', table.concat(out)))
end
