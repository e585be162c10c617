# SPDX-License-Identifier: Apache-2.0
# rlock_hiredis: hiredis 0.14 to 1.4, wherever this system keeps it.
#
# pkg-config comes first: Debian's HiredisConfig.cmake (capital H) defines no target and is a hard error
# without a version, and what `make install` leaves (Fedora, Homebrew) is a .pc file only.
add_library(rlock_hiredis INTERFACE)

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(HIREDIS QUIET IMPORTED_TARGET hiredis>=0.14)
endif()
if(NOT HIREDIS_FOUND)
  find_package(hiredis CONFIG QUIET)
endif()

if(HIREDIS_FOUND)
  # Headers and library must be of one version: only the archive beside the shared library will do.
  string(REGEX REPLACE "\\.so$" ".a" archive "${HIREDIS_LINK_LIBRARIES}")
  if(RLOCK_STATIC AND EXISTS "${archive}")
    target_include_directories(rlock_hiredis SYSTEM INTERFACE ${HIREDIS_INCLUDE_DIRS})
    target_link_libraries(rlock_hiredis INTERFACE ${archive})
  else()
    target_link_libraries(rlock_hiredis INTERFACE PkgConfig::HIREDIS)
  endif()
elseif(TARGET hiredis::hiredis)
  target_link_libraries(rlock_hiredis INTERFACE hiredis::hiredis)
else()
  find_path(HIREDIS_INCLUDE_DIR hiredis/hiredis.h)
  find_library(HIREDIS_LIBRARY hiredis)
  if(NOT HIREDIS_INCLUDE_DIR OR NOT HIREDIS_LIBRARY)
    message(FATAL_ERROR "hiredis 0.14 or newer is missing: install libhiredis-dev (Debian, Ubuntu), "
                        "hiredis-devel (Fedora), hiredis-dev (Alpine) or hiredis (Arch)")
  endif()
  target_include_directories(rlock_hiredis SYSTEM INTERFACE ${HIREDIS_INCLUDE_DIR})
  target_link_libraries(rlock_hiredis INTERFACE ${HIREDIS_LIBRARY})
endif()
