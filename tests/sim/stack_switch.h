// SPDX-License-Identifier: Apache-2.0
// Tells the sanitizers when the program goes on on another stack. Nothing without a sanitizer.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace rlock::sim {

// For one fiber, which is resumed from another stack and goes back there.
class StackSwitch {
 public:
  StackSwitch() = default;
  StackSwitch(const StackSwitch&) = delete;
  StackSwitch& operator=(const StackSwitch&) = delete;

#if defined(__SANITIZE_ADDRESS__)
  // Around the switch to the fiber.
  void leave_for(void* stack, std::size_t size) { __sanitizer_start_switch_fiber(&m_callers_fake, stack, size); }
  void come_back() { __sanitizer_finish_switch_fiber(m_callers_fake, nullptr, nullptr); }
  // In the fiber: when it begins or goes on, and before it goes back.
  void arrive() { __sanitizer_finish_switch_fiber(m_own_fake, &m_callers_stack, &m_callers_size); }
  void go_back(bool for_good)
  {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &m_own_fake, m_callers_stack, m_callers_size);
  }

 private:
  void* m_own_fake = nullptr;
  void* m_callers_fake = nullptr;
  const void* m_callers_stack = nullptr;
  std::size_t m_callers_size = 0;
#elif defined(__SANITIZE_THREAD__)
  ~StackSwitch() { __tsan_destroy_fiber(m_fiber); }
  void leave_for(void*, std::size_t)
  {
    m_caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(m_fiber, 0);
  }
  void come_back() {}
  void arrive() {}
  void go_back(bool) { __tsan_switch_to_fiber(m_caller, 0); }

 private:
  void* m_fiber = __tsan_create_fiber(0);
  void* m_caller = nullptr;
#else
  void leave_for(void*, std::size_t) {}
  void come_back() {}
  void arrive() {}
  void go_back(bool) {}
#endif
};

}  // namespace rlock::sim
