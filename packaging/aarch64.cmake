# SPDX-License-Identifier: Apache-2.0
# Compiles for aarch64 on Debian: g++-aarch64-linux-gnu, and libstdc++-12-dev, libssl-dev and libhiredis-dev
# of the architecture arm64 (packaging/install-deps.sh release installs them).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_STRIP aarch64-linux-gnu-strip)
# libc and libstdc++ of the architecture arm64, because those of the cross-compiler lack the security updates of Debian.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -dumpversion OUTPUT_VARIABLE gcc OUTPUT_STRIP_TRAILING_WHITESPACE)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-B/usr/lib/aarch64-linux-gnu -L/usr/lib/aarch64-linux-gnu -L/usr/lib/gcc/aarch64-linux-gnu/${gcc}")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)  # the build runs the new rlock, which writes the manual pages
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
set(CPACK_RPM_PACKAGE_ARCHITECTURE aarch64)
