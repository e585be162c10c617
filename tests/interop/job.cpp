// SPDX-License-Identifier: Apache-2.0
// job DIR WHO MODE HOLD: the job that rlock runs, a critical section. It writes a line to DIR/log when it begins and when it
// ends, with the time in nanoseconds (CLOCK_MONOTONIC), and between them increments the number in DIR/counter, which only the
// lock protects, unless the MODE, `read` or `permits`, has several holders. HOLD is in milliseconds; `-`: until the end of standard input.
#include <cstdlib>
#include <ctime>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace {

void note(const std::string& log, const char* sign, const std::string& who)
{
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string line = std::to_string(now.tv_sec * 1'000'000'000LL + now.tv_nsec) + " " + sign + " " + who + "\n";
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::exit(2);
  }
  ::close(file);
}

long number_in(const std::string& path)
{
  char text[32] = {};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || ::read(file, text, sizeof text - 1) <= 0) {
    std::exit(2);
  }
  ::close(file);
  return std::strtol(text, nullptr, 10);
}

void write_number(const std::string& path, long number)
{
  const std::string text = std::to_string(number) + "\n";
  const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    std::exit(2);
  }
  ::close(file);
}

void hold(const std::string& time)
{
  if (time == "-") {
    char ignored[16];
    while (::read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
    }
  } else {
    ::usleep(static_cast<useconds_t>(std::stol(time) * 1000));
  }
}

}  // namespace

int main(int argc, char** argv)
{
  if (argc != 5) {
    return 2;
  }
  const std::string directory = argv[1];
  const std::string kind = argv[3];
  const std::string who = std::string(argv[2]) + " " + kind;
  note(directory + "/log", "+", who);
  const bool is_alone = kind != "read" && kind != "permits";
  const long count = is_alone ? number_in(directory + "/counter") : 0;
  hold(argv[4]);
  if (is_alone) {
    write_number(directory + "/counter", count + 1);
  }
  note(directory + "/log", "-", who);
}
