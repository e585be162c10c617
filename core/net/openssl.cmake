# SPDX-License-Identifier: Apache-2.0
# rlock_openssl: the headers of OpenSSL 3. The program loads the library when TLS is wanted.
# rlock_openssl_archives: its archives, for the standalone program, which can load nothing.
find_path(OPENSSL_INCLUDE_DIR openssl/ssl.h)
if(NOT OPENSSL_INCLUDE_DIR)
  message(FATAL_ERROR "OpenSSL's headers are missing: install libssl-dev (Debian, Ubuntu), openssl-devel "
                      "(Fedora), openssl-dev (Alpine) or openssl (Arch)")
endif()
add_library(rlock_openssl INTERFACE)
target_include_directories(rlock_openssl SYSTEM INTERFACE ${OPENSSL_INCLUDE_DIR})

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)  # it knows what the archives need: on Debian 13 that is zlib and zstd
  pkg_check_modules(OPENSSL QUIET libssl>=3)
  add_library(rlock_openssl_archives INTERFACE)
  target_link_libraries(rlock_openssl_archives INTERFACE ${OPENSSL_STATIC_LIBRARIES})
endif()
