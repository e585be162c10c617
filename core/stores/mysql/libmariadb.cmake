# SPDX-License-Identifier: Apache-2.0
# rlock_libmariadb: the header of MariaDB's client library. The program loads the library when a mysql:// or mariadb:// URL is
# used. The header of MySQL's own library does not fit: it lacks the non-blocking calls.
find_path(LIBMARIADB_INCLUDE_DIR mariadb/mysql.h)
if(NOT LIBMARIADB_INCLUDE_DIR)
  message(FATAL_ERROR "libmariadb's header is missing: install libmariadb-dev (Debian, Ubuntu), mariadb-connector-c-devel "
                      "(Fedora), mariadb-connector-c-dev (Alpine) or mariadb-libs (Arch)")
endif()
add_library(rlock_libmariadb INTERFACE)
target_include_directories(rlock_libmariadb SYSTEM INTERFACE ${LIBMARIADB_INCLUDE_DIR} ${LIBMARIADB_INCLUDE_DIR}/mariadb)
