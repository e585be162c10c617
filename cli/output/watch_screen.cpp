// SPDX-License-Identifier: Apache-2.0
// The terminal of rlock watch.
#include "cli/output/watch.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace rlock::cli {
namespace {

constexpr std::string_view enter_page = "\x1b[?1049h\x1b[?25l";  // an alternate page, no cursor
constexpr std::string_view leave_page = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view home = "\x1b[H";
constexpr std::string_view to_line_end = "\x1b[K";
constexpr std::string_view to_page_end = "\x1b[J";
constexpr Size smallest{.rows = 3, .columns = 20};

void write_all(std::string_view text)
{
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) {
      return;  // the terminal is gone, and SIGHUP follows
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// A change of the window size then interrupts the wait for a key.
void wake_on_resize()
{
  struct sigaction action {};
  action.sa_handler = [](int) {};
  ::sigaction(SIGWINCH, &action, nullptr);
}

}  // namespace

bool Screen::is_there() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

Screen::Screen()
{
  ::tcgetattr(STDIN_FILENO, &m_before);
  wake_on_resize();
  enter();
}

Screen::~Screen() { leave(); }

void Screen::enter() const
{
  termios quiet = m_before;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  quiet.c_cc[VMIN] = 0;
  quiet.c_cc[VTIME] = 0;
  quiet.c_cc[VSUSP] = _POSIX_VDISABLE;  // Ctrl-Z is read as a key: see suspend()
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
  write_all(enter_page);
}

void Screen::leave() const
{
  write_all(leave_page);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &m_before);
}

Size Screen::size() const
{
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0 || window.ws_col == 0) {
    return {.rows = 24, .columns = 80};
  }
  return {.rows = std::max<std::size_t>(window.ws_row, smallest.rows),
          .columns = std::max<std::size_t>(window.ws_col, smallest.columns)};
}

void Screen::show(const std::vector<std::string>& lines) const
{
  std::string page(home);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    page += lines[i];
    page += to_line_end;
    page += i + 1 < lines.size() ? "\r\n" : "";
  }
  page += to_page_end;
  write_all(page);
}

std::string Screen::keys() const
{
  std::array<char, 256> pressed{};
  pollfd wait{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, 0) != 1) {
    return {};
  }
  const ssize_t count = ::read(STDIN_FILENO, pressed.data(), pressed.size());
  return count > 0 ? std::string(pressed.data(), static_cast<std::size_t>(count)) : std::string();
}

void Screen::suspend()
{
  leave();
  ::raise(SIGTSTP);
  enter();
}

}  // namespace rlock::cli
