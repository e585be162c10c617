# SPDX-License-Identifier: Apache-2.0
# rlock_libmongoc: the headers of MongoDB's C driver, version 1. The program loads the library when a mongodb:// URL is used.
find_path(LIBMONGOC_INCLUDE_DIR mongoc/mongoc.h PATH_SUFFIXES libmongoc-1.0)
find_path(LIBBSON_INCLUDE_DIR bson/bson.h PATH_SUFFIXES libbson-1.0)
if(NOT LIBMONGOC_INCLUDE_DIR OR NOT LIBBSON_INCLUDE_DIR)
  message(FATAL_ERROR "the headers of MongoDB's C driver are missing: install libmongoc-dev (Debian, Ubuntu), "
                      "mongo-c-driver-devel (Fedora) or mongo-c-driver (Arch)")
endif()
add_library(rlock_libmongoc INTERFACE)
target_include_directories(rlock_libmongoc SYSTEM INTERFACE ${LIBMONGOC_INCLUDE_DIR} ${LIBBSON_INCLUDE_DIR})
