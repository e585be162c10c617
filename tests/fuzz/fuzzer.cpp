// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzzer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace rlock::test {
namespace {

constexpr std::array table{
    Fuzzer{"replies", fuzz_replies},     Fuzzer{"wire", fuzz_wire},
    Fuzzer{"servers", fuzz_servers},     Fuzzer{"locks", fuzz_locks},
    Fuzzer{"events", fuzz_events},       Fuzzer{"urls", fuzz_urls},
    Fuzzer{"durations", fuzz_durations}, Fuzzer{"arguments", fuzz_arguments},
    Fuzzer{"config", fuzz_config},       Fuzzer{"environment", fuzz_environment},
    Fuzzer{"names", fuzz_names},         Fuzzer{"secrets", fuzz_secrets},
    Fuzzer{"proc", fuzz_proc},           Fuzzer{"guardian", fuzz_guardian},
    Fuzzer{"records", fuzz_records},     Fuzzer{"zookeeper", fuzz_zookeeper},
    Fuzzer{"etcd", fuzz_etcd},           Fuzzer{"members", fuzz_members},
    Fuzzer{"runs", fuzz_runs},
};

}  // namespace

std::span<const Fuzzer> fuzzers() { return table; }

void promise(bool kept, std::string_view what, std::string_view shown)
{
  if (!kept) {
    throw BrokenPromise(std::string(what) + (shown.empty() ? "" : ": ") + std::string(shown));
  }
}

std::string_view Input::until(char separator)
{
  const std::string_view part = m_rest.substr(0, m_rest.find(separator));
  m_rest.remove_prefix(std::min(m_rest.size(), part.size() + 1));
  return part;
}

std::int64_t Input::number()
{
  const std::string_view text = line();
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::size_t Input::choice(std::size_t count)
{
  if (m_rest.empty()) {
    return 0;
  }
  const auto byte = static_cast<unsigned char>(m_rest.front());
  m_rest.remove_prefix(1);
  return static_cast<unsigned char>(byte - '0') % count;
}

}  // namespace rlock::test
