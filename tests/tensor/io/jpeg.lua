-- SPDX-License-Identifier: MIT
-- JPEG files of Pillow 13 (its own pixels beside them), as they are, cut, damaged, with sizes that are none.
-- labels: once
local FILES = {
	colour = {shape = {6, 11, 3}, bytes = [[
		ffd8ffe000104a46494600010100000100010000ffdb0043000503040404030504040405050506070c08070707070f0b0b090c110f1212110f111113161c1713141a1511
		111821181a1d1d1f1f1f13172224221e241c1e1f1effdb0043010505050706070e08080e1e1411141e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e
		1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1e1effc00011080006000b03012200021101031101ffc400160001010100000000000000000000000000000406ffc400
		1e10000104010500000000000000000000000003050721021322315191ffc4001501010100000000000000000000000000000405ffc4001b110000070100000000000000
		00000000000001050614313304ffda000c03010002110311003f0091962f6ddb69f86a918bdb74f1b4b8e80223e975425ea7602c359ee89a9d0fffd9]],
		pixels = {
		1, 17, 226, 12, 20, 219, 34, 19, 206, 54, 21, 190, 75, 19, 170, 95, 19, 154, 112, 20, 145, 130, 20, 132, 149, 19, 117, 169, 21,
		105, 186, 22, 93, 12, 48, 232, 23, 50, 227, 43, 51, 212, 64, 50, 195, 85, 48, 177, 106, 49, 162, 123, 51, 151, 141, 51, 138,
		161, 51, 124, 180, 52, 111, 196, 53, 99, 11, 89, 225, 23, 91, 218, 44, 92, 203, 65, 91, 186, 87, 90, 169, 106, 90, 153, 124, 92,
		142, 142, 92, 130, 161, 93, 118, 180, 94, 105, 198, 94, 93, 12, 127, 216, 23, 130, 212, 45, 130, 197, 66, 129, 180, 86, 129,
		161, 106, 129, 145, 125, 130, 136, 143, 130, 122, 160, 129, 108, 179, 131, 95, 197, 131, 83, 16, 168, 215, 28, 170, 208, 49,
		171, 194, 69, 171, 176, 90, 170, 157, 110, 170, 142, 129, 171, 133, 147, 171, 119, 164, 171, 104, 183, 172, 92, 201, 172, 80,
		24, 194, 219, 35, 197, 212, 57, 197, 198, 76, 197, 180, 99, 196, 161, 118, 196, 146, 136, 197, 137, 154, 198, 123, 173, 197,
		109, 193, 200, 97, 209, 199, 84}},
	progressive = {shape = {6, 11, 3}, bytes = [[
		ffd8ffe000104a46494600010100000100010000ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17202e2931302e292d2c333a4a3e333646372c
		2d405741464c4e525352323e5a615a50604a51524fffdb0043010e0e0e131113261515264f352d354f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f
		4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4fffc20011080006000b03011100021101031101ffc4001500010100000000000000000000000000000204ffc40015
		01010100000000000000000000000000000405ffda000c03010002100310000001282d132a7fffc4001810000203000000000000000000000000000001020414ffda0008
		0101000105028d746747ffc4001811000301010000000000000000000000000001040311ffda0008010301013f01c2862a1f0fffc4001811000301010000000000000000
		000000000001040311ffda0008010201013f01de963a5f4fffc40014100100000000000000000000000000000010ffda0008010100063f023fffc4001810000203000000
		000000000000000000000001114161ffda0008010100013f21c22868ffda000c0301000200030000001023ffc400161101010100000000000000000000000000001121ff
		da0008010301013f10ca94ffc400161101010100000000000000000000000000001121ffda0008010201013f10d6bcffc400161001010100000000000000000000000000
		001121ffda0008010100013f10c8403fffd9]],
		pixels = {
		0, 13, 254, 19, 13, 237, 47, 12, 216, 65, 13, 202, 78, 13, 195, 98, 12, 183, 125, 12, 162, 148, 12, 146, 160, 12, 134, 181, 11,
		117, 202, 12, 100, 5, 47, 255, 26, 47, 236, 53, 47, 217, 72, 47, 203, 85, 47, 195, 104, 46, 182, 131, 47, 161, 153, 45, 144,
		166, 46, 135, 186, 46, 117, 209, 46, 99, 2, 92, 241, 24, 92, 225, 51, 91, 204, 70, 92, 191, 83, 92, 183, 103, 92, 171, 129, 91,
		150, 152, 91, 133, 164, 91, 121, 185, 91, 105, 207, 92, 89, 0, 134, 221, 16, 133, 203, 43, 133, 185, 63, 132, 171, 76, 133, 163,
		94, 133, 150, 122, 133, 129, 144, 133, 113, 156, 133, 101, 176, 132, 85, 198, 133, 67, 0, 173, 211, 16, 172, 194, 44, 172, 173,
		62, 172, 161, 75, 172, 153, 96, 173, 141, 122, 172, 119, 145, 172, 103, 157, 172, 91, 178, 172, 74, 199, 172, 57, 3, 204, 212,
		24, 204, 195, 53, 203, 174, 71, 204, 161, 83, 204, 153, 104, 204, 140, 130, 203, 121, 153, 204, 103, 165, 203, 92, 187, 204, 76,
		208, 203, 57}},
	gray = {shape = {6, 11}, bytes = [[
		ffd8ffe000104a46494600010100000100010000ffdb0043000302020302020303030304030304050805050404050a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b
		0b1016101113141515150c0f171816141812141514ffc0000b080006000b01011100ffc4001500010100000000000000000000000000000809ffc4001b10000104030000
		000000000000000000000004060836447381ffda0008010100003f0039449c2e1519af5f43acffd9]],
		pixels = {
		5, 24, 46, 65, 85, 104, 126, 145, 164, 185, 204, 5, 24, 46, 65, 85, 104, 126, 145, 164, 185, 204, 5, 24, 46, 65, 85, 104, 126,
		145, 164, 185, 204, 5, 24, 46, 65, 85, 104, 126, 145, 164, 185, 204, 5, 24, 46, 65, 85, 104, 126, 145, 164, 185, 204, 5, 24, 46,
		65, 85, 104, 126, 145, 164, 185, 204}},
	inks = {shape = {6, 11, 3}, bytes = [[
		ffd8ffee000e41646f626500640000000000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123251d283a333d3c3933383740485c4e40445745373850
		6d51575f626768673e4d71797064785c656763ffc00014080006000b044311004d11005911004b1100ffc40017000003010000000000000000000000000000050603ffc4
		00221000010204070100000000000000000000000204030616310513334262719122ffda000e0443004d0059004b00003f007530ee33ac1cf2f45383334fcd87530ee20a
		3eb2fb0ac1cf2f4ae84cd3949b58828facbecfffd9]],
		pixels = {
}},
}

local file = os.tmpname() .. '.jpg'
local function write(bytes, name)
	local f <close> = assert(io.open(name or file, 'wb'))
	f:write(bytes)
end
local function bytes_of(name)
	return (FILES[name].bytes:gsub('%s', ''):gsub('%x%x', function(h) return string.char(tonumber(h, 16)) end))
end
local function refused()
	local ok, message = pcall(tensor.load, file)
	assert(not ok and not message:find '\n', tostring(message))
	return (message:gsub('^.-load: [^:]*: ', ''))
end

write(bytes_of 'gray')
local there, message = pcall(tensor.load, file)
if not there and message:find 'libturbojpeg' then
	assert(message:find('wanted the library libturbojpeg.so.0, which is not here; install it with: apt-get install libturbojpeg0', 1, true))
	skip 'no libturbojpeg here'
end

for _, name in ipairs {'colour', 'progressive', 'gray'} do
	it('pixels: ' .. name, function()
		write(bytes_of(name))
		local x = tensor.load(file)
		local wanted = tensor(FILES[name].pixels):view(FILES[name].shape)
		assert(x:dtype() == 'uint8' and table.concat({x:size()}, ' ') == table.concat(FILES[name].shape, ' '))
		local off = (x:to 'float32' - wanted):abs():max():item()
		assert(off <= 2, off)
	end)
end

it('any name, by the first bytes', function()
	local other = os.tmpname()
	write(bytes_of 'gray', other)
	print(tensor.load(other):size())  --> 6	11
	os.remove(other)
end)

it('cut and damaged files are errors of one line', function()
	for _, name in ipairs {'colour', 'progressive', 'gray'} do
		local bytes = bytes_of(name)
		for n = 0, #bytes - 3, 7 do
			write(bytes:sub(1, n))
			refused()
		end
		for i = 1, #bytes, 5 do -- whatever comes out: pixels or one line
			write(bytes:sub(1, i - 1) .. string.char(bytes:byte(i) ~ 0x55) .. bytes:sub(i + 1))
			local ok, text = pcall(tensor.load, file)
			assert(ok or not text:find '\n', tostring(text))
		end
	end
	write ''
	print(refused())  --> jpeg: wanted a file that begins with ff d8
	write(bytes_of 'colour':sub(1, -12))
	print(refused())  --> jpeg: Premature end of JPEG file
end)

it('inks, sizes that the file cannot hold', function()
	write(bytes_of 'inks')
	print(refused())  --> jpeg: wanted gray or colour (RGB), got inks (CMYK)
	local bytes = bytes_of 'gray'
	local at = assert(bytes:find('\xff\xc0', 1, true))
	for _, size in ipairs {{65500, 65500}, {60000, 200}, {0, 5}} do
		write(bytes:sub(1, at + 4) .. string.pack('>I2I2', table.unpack(size)) .. bytes:sub(at + 9))
		local before = tensor.memory().peak
		local text = refused()
		assert(text:find 'jpeg: ' and tensor.memory().peak - before < 1 << 20, text)
	end
	write(bytes:sub(1, at + 4) .. string.pack('>I2I2', 65500, 65500) .. bytes:sub(at + 9))
	print(refused())  --> jpeg: wanted a size that ... bytes of file can hold, at most 268435456 pixels, got 65500 x 65500 pixels
end)

it('scans that take minutes', function()
	local bytes = bytes_of 'gray'
	local size, scan = assert(bytes:find('\xff\xc0', 1, true)), assert(bytes:find('\xff\xda', 1, true))
	local head = bytes:sub(1, size + 4) .. string.pack('>I2I2', 4096, 4096) .. bytes:sub(size + 9, scan - 1)
	write(head .. bytes:sub(scan, -3):rep(900) .. bytes:sub(-2))
	print(refused())  --> jpeg: wanted at most 1073741824 pixels in all scans together, got 900 scans of 4096 x 4096 pixels
end)

print(pcall(tensor.save, file, tensor{1, dtype = 'uint8'}:view(1, 1)))  --> false ...wanted a file name that ends in one of .npy .npz .safetensors .png .gguf
os.remove(file)
