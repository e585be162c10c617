// SPDX-License-Identifier: Apache-2.0
// The entry point of libFuzzer. RLOCK_FUZZER is the name of the fuzzer.
#include "fuzz/fuzzer.h"

#include <algorithm>
#include <iostream>

namespace {

const rlock::test::Fuzzer& chosen()
{
  const auto all = rlock::test::fuzzers();
  return *std::find_if(all.begin(), all.end(), [](const auto& each) { return each.name == RLOCK_FUZZER; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size)
{
  static const rlock::test::Fuzzer& fuzzer = chosen();
  try {
    fuzzer.run({reinterpret_cast<const char*>(bytes), size});
  } catch (const std::exception& broken) {
    std::cerr << "\nbroken promise: " << broken.what() << '\n';
    throw;
  }
  return 0;
}
