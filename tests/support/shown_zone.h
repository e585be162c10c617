// SPDX-License-Identifier: Apache-2.0
// Times as this process shows them, in a zone that the test names.
#pragma once

#include "base/shown_time.h"

#include <cstdlib>

namespace rlock::test {

// For its life, times are shown in UTC, whatever the zone of the machine.
class InUtc {
 public:
  InUtc() { shown_zone() = ShownZone::utc; }
  ~InUtc() { shown_zone() = ShownZone::local; }
  InUtc(const InUtc&) = delete;
  InUtc& operator=(const InUtc&) = delete;
};

// For its life, TZ is that of the process. "XYZ-1:30" is 90 minutes ahead of UTC and needs no file.
class InZone {
 public:
  explicit InZone(const char* zone)
  {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  ~InZone()
  {
    ::unsetenv("TZ");
    ::tzset();
  }
  InZone(const InZone&) = delete;
  InZone& operator=(const InZone&) = delete;
};

}  // namespace rlock::test
