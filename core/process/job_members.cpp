// SPDX-License-Identifier: Apache-2.0
// How a Job is made and moved. Apart from job.cpp, because the simulation of the tests defines the rest of the class anew.
#include "process/job.h"

namespace rlock {

Job::Job(Fd socket, pid_t guardian, const SharedDeadline& shared_deadline, Terminal terminal,
         std::vector<pid_t> earlier_children, InheritedPipe inherited_pipe)
    : m_socket(std::move(socket)),
      m_guardian(guardian),
      m_shared_deadline(&shared_deadline),
      m_terminal(std::move(terminal)),
      m_earlier_children(std::move(earlier_children)),
      m_inherited_pipe(std::move(inherited_pipe))
{
}

Job::Job(Job&& other) noexcept
    : m_socket(std::move(other.m_socket)),
      m_guardian(std::exchange(other.m_guardian, 0)),
      m_shared_deadline(other.m_shared_deadline),
      m_terminal(std::move(other.m_terminal)),
      m_earlier_children(std::move(other.m_earlier_children)),
      m_inherited_pipe(std::move(other.m_inherited_pipe))
{
}

}  // namespace rlock
