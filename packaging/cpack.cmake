# SPDX-License-Identifier: Apache-2.0
# Packages: cpack --config build/release/CPackConfig.cmake -G DEB (or RPM). packaging/release.sh makes those of a release.
include(GNUInstallDirs)
set(CPACK_PACKAGE_NAME rlock)
set(CPACK_PACKAGE_VENDOR "the rlock authors")
# packaging/release/project.sh sets RLOCK_PACKAGER and RLOCK_HOME.
set(packager "$ENV{RLOCK_PACKAGER}")
if(packager STREQUAL "")
  set(packager "the rlock authors <rlock@users.noreply.github.com>")
endif()
set(CPACK_PACKAGE_CONTACT "${packager}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run a command under a distributed lock on Redis, a database, etcd or ZooKeeper")
set(CPACK_PACKAGE_DESCRIPTION
"rlock runs a job on one machine at a time. It takes a lock on a Redis server,
runs the job, renews the lock while the job runs, and releases it when the job
has ended. The job is dead before another client can get its lock. On the
server the lock has the layout of Redisson.")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE $ENV{RLOCK_HOME})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "redis-tools | valkey-tools")  # for `local:`; without a service on port 6379
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libssl3 | libssl3t64, libpq5, libmariadb3")
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_SUMMARY "Run a command under a distributed lock on Redis or a database")
set(CPACK_RPM_PACKAGE_DESCRIPTION ${CPACK_PACKAGE_DESCRIPTION})
set(CPACK_RPM_PACKAGE_URL $ENV{RLOCK_HOME})
# Without these rpmbuild writes the time and the name of the host into the package.
set(CPACK_RPM_SPEC_MORE_DEFINE
"%define packager ${CPACK_PACKAGE_CONTACT}
%define _buildhost reproducible
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/man/man5 /usr/share/man/man7 /usr/share/bash-completion
    /usr/share/bash-completion/completions /usr/share/fish /usr/share/fish/vendor_completions.d /usr/share/zsh
    /usr/${RLOCK_ZSH_COMPLETIONS})

# The changelog and the copyright file that Debian requires. The date is that of SOURCE_DATE_EPOCH, if it is set.
string(TIMESTAMP changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packaging/changelog.Debian @ONLY CONTENT
"rlock (@PROJECT_VERSION@) unstable; urgency=medium

  * See CHANGELOG.md.

 -- @packager@  @changelog_date@
")
execute_process(COMMAND gzip -9nkf ${PROJECT_BINARY_DIR}/packaging/changelog.Debian)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/packaging/copyright @ONLY CONTENT
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: rlock

Files: *
Copyright: 2026 the rlock authors
License: Apache-2.0
 On Debian systems, the full text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
install(FILES ${PROJECT_BINARY_DIR}/packaging/changelog.Debian.gz RENAME changelog.gz DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_BINARY_DIR}/packaging/copyright CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY packaging/recipes DESTINATION ${CMAKE_INSTALL_DOCDIR} USE_SOURCE_PERMISSIONS)

include(CPack)
