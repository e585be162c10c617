// SPDX-License-Identifier: Apache-2.0
// A pseudo-terminal, in which a test types and reads as a user does.
#pragma once

#include "base/fd.h"

#include <string>
#include <string_view>

namespace rlock::test {

class TestTerminal {
 public:
  explicit TestTerminal(unsigned short rows = 24, unsigned short columns = 80);

  [[nodiscard]] int process_side() const { return m_slave.get(); }  // for ProcessOptions::terminal
  void resize(unsigned short rows, unsigned short columns);         // the process in the foreground gets WINCH
  void type(std::string_view keys) const;
  void hang_up() { m_master.reset(); }  // has the effect of a closed terminal window or ssh connection
  const std::string& seen();            // the whole output since the beginning, with control sequences

 private:
  Fd m_master;
  Fd m_slave;
  std::string m_seen;
};

}  // namespace rlock::test
