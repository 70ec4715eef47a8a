-- SPDX-License-Identifier: MIT
-- data.folder with PNG files that are written here: 8-bit gray and RGB without compression.
-- labels: once
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
print(table.concat(ds.left_out, ' '))                --> a/notes.txt
print(tostring(ds):match '[^\n]*left out.*')          --> 1 file left out: a/notes.txt
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

it('resizes and crops', function()
	local rows = {}
	for y = 1, 8 do rows[y] = ('%c%c%c%c'):rep(3):format(10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120) end
	os.execute(('rm %s/a/*.png %s/b/*.png'):format(root, root))
	write('a/tall.png', png(1, rows))
	write('b/small.png', png(1, {'\1\2\3', '\4\5\6', '\7\8\9'}))
	write('readme.md', 'beside the folders')
	local wide = tensor.load(root .. '/a/tall.png')
	assert(wide:size(1) == 8 and wide:size(2) == 12)
	local set = data.folder(root, {resize = {4, 6}})
	assert(table.concat({set.x:size()}, ' ') == '2 1 4 6' and table.concat(set.left_out, ' ') == 'a/notes.txt readme.md')
	assert(set.x[1]:codes():eq(wide:view(1, 8, 12):resize {size = {4, 6}, antialias = true}):all():item())
	print(tostring(set):match '[^\n]*left out.*')  --> 2 files left out: a/notes.txt readme.md
	set = data.folder(root, {resize = 4, crop = {4, 3}})
	local four = wide:view(1, 8, 12):resize {size = {4, 6}, antialias = true}
	assert(table.concat({set.x:size()}, ' ') == '2 1 4 3' and set.x[1]:codes():eq(four:narrow(3, 2, 3)):all():item())
	set = data.folder(root, {crop = 2})
	print(set.x[2]:codes():view(4))  --> uint8(4) 1 2 4 5
	print(pcall(data.folder, root))  --> false ...small.png: wanted uint8(1, 8, 12) as ...tall.png has, got uint8(1, 3, 3); see resize= and crop=
	print(pcall(data.folder, root, {crop = {4, 4}}))  --> false ...small.png: crop: wanted at least 4 x 4 pixels, got 3 x 3; see resize=
	print(pcall(data.folder, root, {resize = 0}))  --> false ...folder: resize: wanted a number of pixels or {height, width}, got 0
	print(pcall(data.folder, root, {crop = {1, 2, 3}}))  --> false ...folder: crop: wanted a number of pixels or {height, width}, got table
	os.remove(root .. '/readme.md')
	write('a/tall.png', png(3, {'\1\2\3\4\5\6', '\7\8\9\10\11\12'}))
	write('b/small.png', png(3, {'\1\2\3\4\5\6', '\7\8\9\10\11\12'}))
end)

it('reads JPEG files', function()
	local hex = [[
		ffd8ffe000104a46494600010100000100010000ffdb0043000503040404030504040405050506070c08070707070f0b0b090c110f1212110f111113
		161c1713141a1511111821181a1d1d1f1f1f13172224221e241c1e1f1effdb0043010505050706070e08080e1e1411141e1e1e1e1e1e1e1e1e1e1e1e
		1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1effc00011080006000b03012200021101031101ffc400
		160001010100000000000000000000000000000406ffc4001e10000104010500000000000000000000000003050721021322315191ffc40015010101
		00000000000000000000000000000405ffc4001b11000007010000000000000000000000000001050614313304ffda000c03010002110311003f0091
		962f6ddb69f86a918bdb74f1b4b8e80223e975425ea7602c359ee89a9d0fffd9]]
	write('b/photo.JPG', (hex:gsub('%s', ''):gsub('%x%x', function(h) return string.char(tonumber(h, 16)) end)))
	local there, text = pcall(tensor.load, root .. '/b/photo.JPG')
	if not there and text:find 'libturbojpeg' then skip 'no libturbojpeg here' end
	local set = data.folder(root, {resize = {6, 6}})
	print(#set, set.y, #set.left_out)  --> 3 int64(3) 1 2 2 1
	os.remove(root .. '/b/photo.JPG')
end)
os.remove(root .. '/b/photo.JPG')

write('b/2.png', png(3, {'\1\2\3'}))
data.folder(root)              --> error: 2.png: wanted uint8(3, 2, 2)
write('b/2.png', 'no image')
data.folder(root)              --> error: 2.png
os.execute('rm ' .. root .. '/*/*.png')
data.folder(root)              --> error: wanted folders with .png or .jpg files, got none
os.execute('rm -r ' .. root)
data.folder(root)              --> error: cannot open: No such file or directory
data.folder()                  --> error: folder: wanted the name of a folder, got nil
data.folder('x', {limit=0})    --> error: folder: limit: wanted 1 or more, got 0
