-- SPDX-License-Identifier: MIT
-- SHA-256 against Python's hashlib, at the lengths where the padding changes, of texts and of files.
local internal = debug.getregistry()['quoll.internal']

local function both(text)
	local file = os.tmpname()
	local handle = io.open(file, 'wb')
	handle:write(text)
	handle:close()
	local of_file = internal.sha256_file(file)
	os.remove(file)
	return of_file == internal.sha256(text) and of_file or 'text and file differ'
end

print(both(''))  --> e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
print(both('abc'))  --> ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
print(both(('a'):rep(55)))  --> 9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318
print(both(('a'):rep(56)))  --> b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a
print(both(('a'):rep(63)))  --> 7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34
print(both(('a'):rep(64)))  --> ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb
print(both(('a'):rep(65)))  --> 635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0
print(both(('\0\255'):rep(50001)))  --> 4ff87ced6013c920d1c305e3cd77f9ef4329374f25bb5f44d4f8d06dbf8b34eb
print(internal.sha256_file '/no/such/file')  --> nil No such file or directory
print(internal.sha256_file '/')  --> nil Is a directory
print(internal.sha256(tensor{97, 98, 99}:to 'uint8') == internal.sha256 'abc')  --> true
print(internal.sha256(tensor{1, 2}) == internal.sha256(string.pack('=ff', 1, 2)))  --> true
print(internal.sha256(tensor.zeros(0)) == internal.sha256 '')  --> true
print(pcall(internal.sha256, tensor{{1, 2}, {3, 4}}:transpose(1, 2)))  --> false ...string expected...
