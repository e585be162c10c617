// SPDX-License-Identifier: Apache-2.0
#include "job/lifeline.h"

#include <cerrno>
#include <new>
#include <system_error>

#include <sys/mman.h>

namespace rlock {

static_assert(std::atomic<std::int64_t>::is_always_lock_free,
              "a writer that is stopped must not hold anything the guardian waits for");

Lifeline::Lifeline(Instant valid_until)
{
  void* page =
      ::mmap(nullptr, sizeof *m_page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap");
  }
  m_page = new (page) std::atomic<std::int64_t>(valid_until.time_since_epoch().count());
}

Lifeline::~Lifeline() { ::munmap(m_page, sizeof *m_page); }

void Lifeline::move_to(Instant valid_until)
{
  m_page->store(valid_until.time_since_epoch().count());
}

Instant Lifeline::valid_until() const { return Instant{Instant::duration{m_page->load()}}; }

}  // namespace rlock
