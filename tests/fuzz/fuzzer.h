// SPDX-License-Identifier: Apache-2.0
// A fuzzer is a function that gets arbitrary bytes, calls a part of rlock with them, and checks what that part promises.
// libFuzzer calls it with bytes of its own (driver.cpp); a unit test calls it with each file of corpus/NAME (replay_test.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

namespace rlock::test {

// A broken promise. libFuzzer takes the exception for a crash; in a unit test the case fails.
struct BrokenPromise : std::logic_error {
  using std::logic_error::logic_error;
};
void promise(bool kept, std::string_view what, std::string_view shown = {});

// The input as a sequence of parts, so that a file of the corpus can be written by hand. Past its end all parts are empty.
class Input {
 public:
  explicit Input(std::string_view bytes) : m_rest(bytes) {}

  std::string_view until(char separator);  // without the separator
  std::string_view line() { return until('\n'); }
  std::int64_t number();                  // a line; 0 when it is no number
  std::size_t choice(std::size_t count);  // one byte: '0' is the first of `count`, and so on
  bool flag() { return choice(2) == 1; }
  [[nodiscard]] std::string_view rest() const { return m_rest; }
  [[nodiscard]] bool empty() const { return m_rest.empty(); }

 private:
  std::string_view m_rest;
};

struct Fuzzer {
  std::string_view name;
  void (*run)(std::string_view bytes);
};
std::span<const Fuzzer> fuzzers();

// Of bytes that a server chose:
void fuzz_replies(std::string_view bytes);  // RESP, to everything that interprets the replies of scripts
void fuzz_wire(std::string_view bytes);     // bytes on a socket, to connection, handshake and subscription
void fuzz_servers(
    std::string_view bytes);              // slot maps, redirections, addresses of masters, errors, INFO, doctor's rules
void fuzz_locks(std::string_view bytes);  // holders and waiters, to every output
void fuzz_events(std::string_view bytes);     // entries of an event log, to every output
void fuzz_records(std::string_view bytes);    // the record of a lock in a store, to codec, scripts and commit
void fuzz_zookeeper(std::string_view bytes);  // a frame of ZooKeeper, the data and the name of a node
void fuzz_etcd(std::string_view bytes);       // messages of etcd, and the proof that they make
void fuzz_members(std::string_view bytes);    // bytes on a socket, to the clients of ZooKeeper and of etcd
void fuzz_runs(std::string_view bytes);       // the list of kept runs of a lock
// Of bytes that the caller or the environment chose:
void fuzz_urls(std::string_view bytes);
void fuzz_durations(std::string_view bytes);
void fuzz_arguments(std::string_view bytes);  // a command line, through the whole parser of its verb
void fuzz_config(std::string_view bytes);
void fuzz_environment(std::string_view bytes);
void fuzz_names(std::string_view bytes);  // keys, tokens, globs, ACL rules
void fuzz_secrets(std::string_view bytes);
// Of bytes that another process chose:
void fuzz_proc(std::string_view bytes);
void fuzz_guardian(std::string_view bytes);

}  // namespace rlock::test
