// SPDX-License-Identifier: Apache-2.0
#include "sim/fiber.h"

#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace rlock::sim {
namespace {

constexpr std::size_t stack_size = 512 * 1024;

Fiber* current = nullptr;

// Stacks are used again, because making one costs two system calls.
std::vector<void*>& free_stacks()
{
  static std::vector<void*> stacks;
  return stacks;
}

void* take_stack()
{
  if (!free_stacks().empty()) {
    void* const stack = free_stacks().back();
    free_stacks().pop_back();
    return stack;
  }
  void* const stack = ::mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) {
    throw std::bad_alloc();
  }
  return stack;
}

}  // namespace

Fiber::Fiber(Process& owner, std::function<void()> body)
    : process(owner), m_body(std::move(body)), m_stack(take_stack())
{
  ::getcontext(&m_context);
  m_context.uc_stack = {.ss_sp = m_stack, .ss_flags = 0, .ss_size = stack_size};
  m_context.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&m_context, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32),
                static_cast<unsigned>(self));
}

Fiber::~Fiber() { free_stacks().push_back(m_stack); }

Fiber* Fiber::running() { return current; }

void Fiber::enter(unsigned high, unsigned low)
{
  auto* const self = reinterpret_cast<Fiber*>(std::uintptr_t{high} << 32 | low);
  self->m_switch.arrive();
  try {
    self->m_body();
  } catch (const Killed&) {
  } catch (...) {
    self->m_failure = std::current_exception();
  }
  self->m_body = nullptr;
  self->is_done = true;
  self->suspend();
}

void Fiber::resume()
{
  Fiber* const before = std::exchange(current, this);
  m_switch.leave_for(m_stack, stack_size);
  ::swapcontext(&m_scheduler, &m_context);
  m_switch.come_back();
  current = before;
  if (m_failure) {
    std::rethrow_exception(std::exchange(m_failure, nullptr));
  }
}

void Fiber::suspend()
{
  m_switch.go_back(is_done);
  ::swapcontext(&m_context, &m_scheduler);
  m_switch.arrive();
}

}  // namespace rlock::sim
