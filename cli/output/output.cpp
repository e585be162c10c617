// SPDX-License-Identifier: Apache-2.0
#include "cli/output/output.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cwchar>
#include <system_error>

#include <locale.h>
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

// The locale whose characters are those of UTF-8, whatever the user's is; null: the system has none.
locale_t utf8_locale()
{
  static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

// wcwidth(3) and mbrtowc(3) use the locale of the thread.
class Utf8Thread {
 public:
  Utf8Thread() : m_before(utf8_locale() == nullptr ? nullptr : ::uselocale(utf8_locale())) {}
  ~Utf8Thread() { m_before == nullptr ? nullptr : ::uselocale(m_before); }
  Utf8Thread(const Utf8Thread&) = delete;
  Utf8Thread& operator=(const Utf8Thread&) = delete;

  // Of one character. What the C library does not know takes one column.
  [[nodiscard]] std::size_t width_of(std::string_view character) const
  {
    wchar_t wide = 0;
    std::mbstate_t state{};
    // NOLINTNEXTLINE(concurrency-mt-unsafe): with a state of its own, and the locale of the thread
    const std::size_t size = std::mbrtowc(&wide, character.data(), character.size(), &state);
    const bool is_known = m_before != nullptr && size == character.size();
    const int columns = is_known ? ::wcwidth(wide) : -1;
    return columns < 0 ? 1 : static_cast<std::size_t>(columns);
  }

 private:
  locale_t m_before;
};

bool is_ascii(std::string_view text)
{
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// As many characters from the front as fit in the columns, and how many columns they take.
struct Fitting {
  std::string_view text;
  std::size_t columns;
};
Fitting fitting(std::string_view text, std::size_t columns)
{
  if (is_ascii(text)) {
    const std::size_t count = std::min(text.size(), columns);
    return {text.substr(0, count), count};
  }
  const Utf8Thread thread;
  std::size_t taken = 0;
  std::size_t size = 0;
  while (size < text.size()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text.substr(size)), 1);
    const std::size_t more = thread.width_of(text.substr(size, length));
    if (taken + more > columns) {
      break;
    }
    taken += more;
    size += length;
  }
  return {text.substr(0, size), taken};
}

}  // namespace

std::string Colors::paint(Style style, std::string_view text) const
{
  if (!m_on || text.empty()) {
    return std::string(text);
  }
  return std::string(sequences[static_cast<std::size_t>(style)]).append(text).append(normal);
}

std::size_t width(std::string_view text) { return fitting(text, SIZE_MAX).columns; }

std::string clipped(std::string_view text, std::size_t columns)
{
  if (width(text) <= columns) {
    return std::string(text);
  }
  return columns == 0 ? "" : std::string(fitting(text, columns - 1).text) + "…";
}

std::string fitted(std::string_view text, std::size_t columns)
{
  const std::string shown = clipped(text, columns);
  return shown + std::string(columns - width(shown), ' ');
}

}  // namespace rlock::cli
