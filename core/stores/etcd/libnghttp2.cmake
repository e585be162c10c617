# SPDX-License-Identifier: Apache-2.0
# rlock_libnghttp2: the header of libnghttp2, which frames HTTP/2; the program loads the library when an etcd:// URL is used.
# rlock_protozero: the headers that encode and decode the messages of etcd; there is no library.
find_path(LIBNGHTTP2_INCLUDE_DIR nghttp2/nghttp2.h)
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp)
if(NOT LIBNGHTTP2_INCLUDE_DIR OR NOT PROTOZERO_INCLUDE_DIR)
  message(FATAL_ERROR "the headers of nghttp2 or of protozero are missing: install libnghttp2-dev and libprotozero-dev (Debian, "
                      "Ubuntu), libnghttp2-devel and protozero-devel (Fedora), nghttp2-dev and protozero-dev (Alpine) or "
                      "libnghttp2 and protozero (Arch)")
endif()
foreach(library libnghttp2 protozero)
  string(TOUPPER ${library} name)
  add_library(rlock_${library} INTERFACE)
  target_include_directories(rlock_${library} SYSTEM INTERFACE ${${name}_INCLUDE_DIR})
endforeach()
