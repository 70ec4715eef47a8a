-- SPDX-License-Identifier: MIT
-- The device whose kernels tests are for: cudaemu, or cuda where there is a GPU (tests/CMakeLists.txt).
local device = os.getenv 'QUOLL_TEST_DEVICE'
if not device then skip 'cudaemu: the emulation is not built' end
return device
