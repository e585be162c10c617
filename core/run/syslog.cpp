// SPDX-License-Identifier: Apache-2.0
#include "run/syslog.h"

#include "base/text.h"

#include <syslog.h>

namespace rlock {

void write_to_syslog(const std::string& line)
{
  if (!line.empty()) {
    ::openlog("rlock", LOG_PID, LOG_USER);
    ::syslog(LOG_ERR, "%s", without_controls(line).c_str());
  }
}

}  // namespace rlock
