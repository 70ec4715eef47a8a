-- SPDX-License-Identifier: MIT
-- g:export{project=}: additional files for a build system. 'make' is the plain folder.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local project = {KINDS = {'make', 'cmake', 'zephyr', 'arduino'}}

local CMAKE = [[
# Exported by Quoll. add_subdirectory() of this folder gives the library @ID@; by itself it builds the program of the self-test, too.
cmake_minimum_required(VERSION 3.13)
project(@ID@ C)
add_library(@ID@ STATIC @ID@.c)
target_include_directories(@ID@ PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
set_target_properties(@ID@ PROPERTIES C_STANDARD 99)
target_compile_options(@ID@ PRIVATE -ffp-contract=off -fno-strict-aliasing -fno-delete-null-pointer-checks)
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
	add_executable(@ID@_selftest main.c)
	target_link_libraries(@ID@_selftest PRIVATE @ID@)
	enable_testing()
	add_test(NAME @ID@ COMMAND @ID@_selftest @WEIGHTS@--selftest)
endif()
]]
local MODULE = [[
# Exported by Quoll: name the folder in ZEPHYR_EXTRA_MODULES and set CONFIG_@UPPER@=y.
name: @ID@
build:
  cmake: zephyr
  kconfig: zephyr/Kconfig
]]
local ZEPHYR = [[
# Exported by Quoll.
if(CONFIG_@UPPER@)
  zephyr_library_named(@ID@)
  zephyr_library_sources(../@ID@.c)
  zephyr_library_compile_options(-ffp-contract=off -fno-strict-aliasing -fno-delete-null-pointer-checks)
  zephyr_include_directories(..)
endif()
]]
local KCONFIG = [[
# Exported by Quoll.
config @UPPER@
	bool "the network @ID@"
]]
local ARDUINO = [[
name=@ID@
version=1.0.0
author=Quoll
maintainer=Quoll
sentence=The network @ID@, exported by Quoll.
paragraph=Forward passes as plain C without allocation.
category=Data Processing
url=https://localhost
architectures=*
includes=@ID@.h
]]

function project.check(kind)
	if base.one_of(kind, project.KINDS) then return kind end
	base.fail('export: project: wanted %s, got %s%s', table.concat(project.KINDS, ' '), base.describe(kind), base.near(kind, project.KINDS))
end

-- Adds the files of this kind of project to the texts, or moves texts to other folders.
function project.arrange(kind, texts, bundle)
	local function filled(text)
		return (text:gsub('@(%u+)@', {ID = bundle.id, UPPER = bundle.id:upper(),
			WEIGHTS = bundle.blob and ('--weights ${CMAKE_CURRENT_SOURCE_DIR}/%s.bin '):format(bundle.id) or ''}))
	end
	if kind == 'cmake' then texts['CMakeLists.txt'] = filled(CMAKE) end
	if kind == 'zephyr' then
		texts['zephyr/module.yml'], texts['zephyr/CMakeLists.txt'], texts['zephyr/Kconfig'] = filled(MODULE), filled(ZEPHYR), filled(KCONFIG)
	end
	if kind ~= 'arduino' then return texts end
	local moved = {['library.properties'] = filled(ARDUINO)}
	for name, text in next, texts do
		if name == 'main.c' or name == bundle.id .. '.bin' then
			moved['extras/' .. name] = text
		elseif name ~= 'Makefile' then
			moved['src/' .. name] = text
		end
	end
	return moved
end

return project
