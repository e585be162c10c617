// SPDX-License-Identifier: Apache-2.0
// The result of a function that can fail: a value, or an Error that says why.
//
// An expected outcome (a lock is busy, a lock has another holder) is a value of a type of its own. An Error means that the
// function could not find out.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace rlock {

// Why something failed, as far as callers tell cases apart. exit_code.h maps each ErrorCode to an exit code.
enum class ErrorCode {
  usage,             // the command line is invalid
  config,            // the environment or a file is invalid, or the key holds something that is no such lock
  unreachable,       // no answer, or one that rlock does not know: the request may or may not have happened
  server_not_ready,  // the server answered that it cannot serve now (loading, read-only, out of memory): nothing happened
  refused,           // the server refused the authentication, or a command by its ACL
  os,                // a system call failed: fork, memory
  internal,          // a defect of rlock, or a server that behaves like no Redis
  interrupted,       // the caller's StopToken was requested
  not_found,         // no such command
  not_executable,
};

// Whether the same request may succeed later.
constexpr bool is_passing(ErrorCode code)
{
  return code == ErrorCode::unreachable || code == ErrorCode::server_not_ready;
}

struct Error {
  ErrorCode code;
  std::string text;           // lower case, names the subject and the fix, no newline, never a secret
  int script_line = 0;        // the line of the script whose command was refused or is unknown, from 1; 0: no script
  bool was_there = false;     // unreachable: the server has answered on this connection before
  bool answered = false;      // unreachable: the server has answered a part of this request
  bool late = false;          // unreachable: no answer came before the deadline
  bool no_room = false;       // nothing happened: the server has no room to write it, until an operator makes some
  bool nobody_there = false;  // unreachable: nothing listens at the address
  std::size_t advice = 0;     // unreachable: the end of `text` that says in parentheses what to do, in bytes
};

// `advice`: " (is it running?)", or nothing.
inline Error unreachable(std::string text, std::string_view advice)
{
  return {.code = ErrorCode::unreachable, .text = text.append(advice), .advice = advice.size()};
}

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

// Whether the system has run out of memory or descriptors, so that the same call may succeed later.
constexpr bool is_shortage(int error)
{
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace rlock

// Leaves the function with the Error of a Result:
//
//   ASSIGN_OR_RETURN(const auto name, LockName::parse(text));  // declares `name` with the value
//   RETURN_IF_ERROR(connection.send(words, limit));            // the value, if there is one, is not needed
//
// The field's names (Abseil, Chromium). An expression may have commas.
// NOLINTBEGIN(*-macro-*)
#define ASSIGN_OR_RETURN(declaration, ...) ASSIGN_OR_RETURN_BY(RESULT_ON_LINE(__LINE__), declaration, __VA_ARGS__)
#define ASSIGN_OR_RETURN_BY(result, declaration, ...) \
  auto result = __VA_ARGS__;                          \
  if (!result) {                                      \
    return result.error();                            \
  }                                                   \
  declaration = *std::move(result)
#define RETURN_IF_ERROR(...)                          \
  do {                                                \
    if (const auto result_ = __VA_ARGS__; !result_) { \
      return result_.error();                         \
    }                                                 \
  } while (false)
#define RESULT_ON_LINE(line) RESULT_JOINED(result_on_line_, line)
#define RESULT_JOINED(name, line) name##line
// NOLINTEND(*-macro-*)
