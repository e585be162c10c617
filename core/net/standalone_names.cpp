// SPDX-License-Identifier: Apache-2.0
// Looks names up in the standalone program. /etc/nsswitch.conf names modules that belong to the libc of the host, which must not
// be loaded beside the libc that is linked. Files and DNS are part of that libc.
#include <nss.h>

namespace {

[[gnu::constructor]] void use_files_and_dns()
{
  ::__nss_configure_lookup("hosts", "files dns");
  ::__nss_configure_lookup("passwd", "files");
}

}  // namespace
