// SPDX-License-Identifier: Apache-2.0
// What a function gives back when it can fail: the value, or an Error that says why.
//
// Outcomes that are part of the plan (busy, not ours) are values of their own types; an Error means that
// the plan itself could not be carried out.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace rlock {

// Why something failed, as far as the caller has to tell cases apart. `exit_code.h` maps each to a code.
enum class ErrorCode {
  usage,        // the command line says something that cannot be meant
  config,       // the environment or a file says it, or the key holds something that is no such lock
  unreachable,  // nobody answered: the request may or may not have happened
  unfit,        // it answered that it cannot now (loading, read-only, out of memory): nothing happened
  refused,      // authentication or ACL
  os,           // fork, memory, a system call
  internal,     // ours
  interrupted,  // our own Stop became readable
  not_found,    // no such command
  not_executable,
};

// Whether it may be another time, with nothing changed by us.
constexpr bool is_passing(ErrorCode fault) { return fault == ErrorCode::unreachable || fault == ErrorCode::unfit; }

struct Error {
  ErrorCode fault;
  std::string text;        // lower case, names the thing and the fix, no newline, never a secret
  int script_line = 0;     // refused, in a script: where, counted from 1
  bool was_there = false;  // unreachable: it had spoken to us before it was gone
};

struct Done {};  // success without a value

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : m_state(std::in_place_index<0>, std::move(value)) {}      // NOLINT(*-explicit-*)
  Result(Error error) : m_state(std::in_place_index<1>, std::move(error)) {}  // NOLINT(*-explicit-*)

  explicit operator bool() const { return m_state.index() == 0; }
  T& operator*() & { return std::get<0>(m_state); }
  const T& operator*() const& { return std::get<0>(m_state); }
  T&& operator*() && { return std::get<0>(std::move(m_state)); }
  T* operator->() { return &std::get<0>(m_state); }
  const T* operator->() const { return &std::get<0>(m_state); }
  [[nodiscard]] const Error& error() const { return std::get<1>(m_state); }

 private:
  std::variant<T, Error> m_state;
};

}  // namespace rlock
