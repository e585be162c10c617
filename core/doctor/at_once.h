// SPDX-License-Identifier: Apache-2.0
// The same question about several at once, so that those who are silent cost one timeout together. Private to doctor.
#pragma once

#include "base/signal_blocked_thread.h"

#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace rlock::doctor {

// question(each), in the order of `all`. Where there can be no thread it is asked here.
template <typename Each, typename Question>
auto at_once(const std::vector<Each>& all, const Question& question)
{
  using Answer = std::invoke_result_t<const Question&, const Each&>;
  std::vector<std::optional<Answer>> slots(all.size());
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto ask = [&slot = slots[i], &question, &each = all[i]] { slot.emplace(question(each)); };
    try {
      threads.push_back(deaf_thread(ask));
    } catch (const std::system_error&) {
      ask();
    }
  }
  std::vector<Answer> answers;
  answers.reserve(slots.size());
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (auto& slot : slots) {
    answers.push_back(*std::move(slot));
  }
  return answers;
}

}  // namespace rlock::doctor
