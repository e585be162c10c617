# SPDX-License-Identifier: Apache-2.0
# rlock_openssl: the headers of OpenSSL 3. The library is loaded when TLS is wanted, and linked only where nothing can be
# loaded.
find_path(OPENSSL_INCLUDE_DIR openssl/ssl.h)
if(NOT OPENSSL_INCLUDE_DIR)
  message(FATAL_ERROR "OpenSSL's headers are missing: install libssl-dev (Debian, Ubuntu), openssl-devel "
                      "(Fedora), openssl-dev (Alpine) or openssl (Arch)")
endif()
add_library(rlock_openssl INTERFACE)
target_include_directories(rlock_openssl SYSTEM INTERFACE ${OPENSSL_INCLUDE_DIR})
if(RLOCK_STANDALONE)  # by pkg-config, which knows what the archives need: on Debian 13 that is zlib and zstd
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(STANDALONE_SSL REQUIRED libssl>=3)
  target_link_libraries(rlock_openssl INTERFACE ${STANDALONE_SSL_STATIC_LIBRARIES})
else()
  target_link_libraries(rlock_openssl INTERFACE ${CMAKE_DL_LIBS})
endif()
