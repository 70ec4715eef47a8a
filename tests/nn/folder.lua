-- SPDX-License-Identifier: MIT
-- data.folder with PNG files that are written here: 8-bit gray and RGB without compression.
local function crc(text)
	local c = 0xffffffff
	for i = 1, #text do
		c = c ~ text:byte(i)
		for _ = 1, 8 do c = c & 1 == 1 and (c >> 1) ~ 0xedb88320 or c >> 1 end
	end
	return c ~ 0xffffffff
end

local function chunk(kind, text) return string.pack('>I4', #text) .. kind .. text .. string.pack('>I4', crc(kind .. text)) end

local COLOUR = {0, 4, 2, 6} -- PNG's code by the number of channels
-- rows: list of strings of bytes
local function png(channels, rows)
	local raw, a, b = {}, 1, 0
	for i, row in ipairs(rows) do raw[i] = '\0' .. row end
	local text = table.concat(raw)
	for i = 1, #text do
		a = (a + text:byte(i)) % 65521
		b = (b + a) % 65521
	end
	local stored = string.pack('<I2BI2I2', 0x0178, 1, #text, #text ~ 0xffff) .. text .. string.pack('>I2I2', b, a)
	return '\x89PNG\r\n\x1a\n' .. chunk('IHDR', string.pack('>I4I4BBBBB', #rows[1] // channels, #rows, 8, COLOUR[channels], 0, 0, 0)) ..
		chunk('IDAT', stored) .. chunk('IEND', '')
end

local root = os.tmpname()
local function write(name, text)
	local f <close> = assert(io.open(root .. '/' .. name, 'wb'))
	f:write(text)
end
os.execute(('rm %s && mkdir -p %s/b %s/a %s/empty %s/.hidden'):format(root, root, root, root, root))
write('b/1.png', png(1, {'\1\2\3', '\4\5\6'}))
write('a/2.PNG', png(1, {'\11\12\13', '\14\15\16'}))
write('a/1.png', png(1, {'\21\22\23', '\24\25\26'}))
write('a/notes.txt', 'no image')
write('.hidden/1.png', 'no image')

local ds = data.folder(root)
print(#ds, table.concat(ds.classes, ' '))            --> 3 a b
print(ds.x:size())                                   --> 3 1 2 3
print(ds.y)                                          --> int64(3)  1  1  2
print(ds.x[1]:codes():view(6))                       --> uint8(6)  21  22  23  24  25  26
print(ds.x[3]:codes():view(6))                       --> uint8(6)  1  2  3  4  5  6
print(ds.x[3]:dequantize():view(6)[6]:item() * 255)  --> 6.0
print(#data.folder(root, {limit=1}))                 --> 2

it('turns colours into planes and leaves alpha out', function()
	os.execute(('rm %s/a/*.png %s/a/*.PNG'):format(root, root))
	write('a/1.png', png(3, {'\1\2\3\4\5\6', '\7\8\9\10\11\12'}))
	write('b/1.png', png(4, {'\1\2\3\255\4\5\6\255', '\7\8\9\255\10\11\12\255'}))
	local colours = data.folder(root)
	assert(table.concat({colours.x:size()}, ' ') == '2 3 2 2')
	assert(table.concat(colours.x[1]:codes():reshape(12):totable(), ' ') == '1 4 7 10 2 5 8 11 3 6 9 12')
	assert(colours.x[2]:codes():eq(colours.x[1]:codes()):all():item())
end)

write('b/2.png', png(3, {'\1\2\3'}))
data.folder(root)              --> error: 2.png: wanted uint8(3, 2, 2)
write('b/2.png', 'no image')
data.folder(root)              --> error: 2.png
os.execute('rm ' .. root .. '/*/*.png')
data.folder(root)              --> error: wanted folders with .png files, got none
os.execute('rm -r ' .. root)
data.folder(root)              --> error: cannot open: No such file or directory
data.folder()                  --> error: folder: wanted the name of a folder, got nil
data.folder('x', {limit=0})    --> error: folder: limit: wanted 1 or more, got 0
