# SPDX-License-Identifier: Apache-2.0
# rlock_libcurl: the headers of libcurl. The program loads the library when an s3:// URL is used.
find_path(LIBCURL_INCLUDE_DIR curl/curl.h)
if(NOT LIBCURL_INCLUDE_DIR)
  message(FATAL_ERROR "the headers of libcurl are missing: install libcurl4-openssl-dev (Debian, Ubuntu), libcurl-devel (Fedora), "
                      "curl-dev (Alpine) or curl (Arch)")
endif()
add_library(rlock_libcurl INTERFACE)
target_include_directories(rlock_libcurl SYSTEM INTERFACE ${LIBCURL_INCLUDE_DIR})
