// SPDX-License-Identifier: Apache-2.0
#include "cli/output/output.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

namespace rlock::cli {

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Result<Done> finish_output()
{
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) {
    return Done{};
  }
  const std::string why = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  return Error{ErrorCode::os, "cannot write to standard output" + why};
}

bool drop_unread_output()
{
  pollfd out{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
  if (::poll(&out, 1, 0) != 1 || (out.revents & POLLERR) == 0) {
    return false;
  }
  ::__fpurge(stdout);
  std::clearerr(stdout);
  return true;
}

namespace {

constexpr std::array<std::string_view, 5> sequences{"\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[7m"};
constexpr std::string_view normal = "\x1b[0m";

}  // namespace

std::string Colors::paint(Style style, std::string_view text) const
{
  if (!m_on || text.empty()) {
    return std::string(text);
  }
  return std::string(sequences[static_cast<std::size_t>(style)]).append(text).append(normal);
}

namespace {

// The bytes of the first `count` characters.
std::string_view first(std::string_view text, std::size_t count)
{
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && count-- == 0) {
      return text.substr(0, i);
    }
  }
  return text;
}

}  // namespace

std::size_t width(std::string_view text)
{
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string clipped(std::string_view text, std::size_t columns)
{
  if (width(text) <= columns) {
    return std::string(text);
  }
  return columns == 0 ? "" : std::string(first(text, columns - 1)) + "…";
}

std::string fitted(std::string_view text, std::size_t columns)
{
  const std::string shown = clipped(text, columns);
  return shown + std::string(columns - width(shown), ' ');
}

std::string copied_word(std::string_view text)
{
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (without_controls(text) == text) {
    const bool is_plain = !text.empty() && text.find_first_not_of(plain) == std::string_view::npos;
    return is_plain ? std::string(text) : shell_quoted(text);
  }
  std::string word = "$'";
  for (const char c : printable(text)) {
    word += c == '\'' ? "\\'" : std::string(1, c);
  }
  return word + "'";
}

}  // namespace rlock::cli
