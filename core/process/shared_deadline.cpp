// SPDX-License-Identifier: Apache-2.0
#include "process/shared_deadline.h"

#include <cerrno>
#include <new>
#include <system_error>

#include <sys/eventfd.h>
#include <sys/mman.h>

namespace rlock {

static_assert(std::atomic<std::int64_t>::is_always_lock_free && std::atomic<pid_t>::is_always_lock_free,
              "a stopped writer must not hold a lock that the guardian waits for");

SharedDeadline::SharedDeadline(Instant valid_until) : m_moved(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
{
  if (!m_moved) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  void* page = ::mmap(nullptr, sizeof *m_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap");
  }
  m_page = new (page) Page{.valid_until = valid_until.time_since_epoch().count(), .main_process = 0};
}

SharedDeadline::~SharedDeadline() { ::munmap(m_page, sizeof *m_page); }

void SharedDeadline::move_to(Instant valid_until)
{
  m_page->valid_until.store(valid_until.time_since_epoch().count());
  ::eventfd_write(m_moved.get(), 1);
}

Instant SharedDeadline::valid_until() const { return Instant{Instant::duration{m_page->valid_until.load()}}; }

void SharedDeadline::note_move() const
{
  eventfd_t moves = 0;
  ::eventfd_read(m_moved.get(), &moves);
}

void SharedDeadline::set_main_process(pid_t pid) { m_page->main_process.store(pid); }

pid_t SharedDeadline::main_process() const { return m_page->main_process.load(); }

}  // namespace rlock
