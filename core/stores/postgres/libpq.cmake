# SPDX-License-Identifier: Apache-2.0
# rlock_libpq: the header of PostgreSQL's client library. The program loads the library when a postgresql:// URL is used.
find_path(LIBPQ_INCLUDE_DIR libpq-fe.h PATH_SUFFIXES postgresql pgsql)
if(NOT LIBPQ_INCLUDE_DIR)
  message(FATAL_ERROR "libpq's header is missing: install libpq-dev (Debian, Ubuntu), libpq-devel (Fedora), "
                      "libpq-dev (Alpine) or postgresql-libs (Arch)")
endif()
add_library(rlock_libpq INTERFACE)
target_include_directories(rlock_libpq SYSTEM INTERFACE ${LIBPQ_INCLUDE_DIR})
