// SPDX-License-Identifier: Apache-2.0
// Masking of command lines. Input: the words of a command, one in a line. A word that is a secret option gets a secret value
// behind it, and a secret is put into words that end with an assignment or with the user of a URL.
#include "base/text.h"
#include "fuzz/fuzzer.h"

#include <array>
#include <string>
#include <vector>

namespace rlock::test {
namespace {

constexpr std::string_view secret = "S3cretValue";

// Names that mean a secret, whatever stands before them.
constexpr std::array<std::string_view, 8> options{"--password", "--db-passwd", "--secret",   "--token",
                                                  "--api-key",  "-apikey",     "--PASSWORD", "--x.token[1]"};
constexpr std::array<std::string_view, 8> assignments{
    "PASSWORD=", "db_passwd=", "MY_SECRET+=", "token:=", "--api-key=", "X-Token=", "--env=TOKEN=", "{\"password="};

bool is_hidden(std::string_view shown) { return shown.find(secret) == std::string_view::npos; }

// A script, which masking reads as a shell does, may quote what follows: then the words after it are part of the quotation.
bool announces_script(std::string_view word)
{
  return word == "--command" || (word.starts_with('-') && !word.starts_with("--") && word.ends_with('c'));
}

void promise_hidden(std::vector<std::string> words)
{
  const std::string shown = shown_command(words);
  promise(is_hidden(shown), "no secret is shown", shown);
}

}  // namespace

void fuzz_secrets(std::string_view bytes)
{
  Input input(bytes);
  const std::size_t which = input.choice(options.size());
  const std::string_view text = input.rest();
  const std::string once = without_secrets(text);
  promise(without_secrets(once) == once, "masking twice changes nothing", once);
  if (text.find(secret) != std::string_view::npos) {
    return;
  }

  std::vector<std::string> words{"./job.sh"};
  while (!input.empty()) {
    words.emplace_back(input.line());
  }
  if (announces_script(words.back())) {
    return;
  }
  const std::string tail = words.size() > 1 ? words.back() : "";  // any text may follow the secret in its word
  auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more);
    return all;
  };
  promise_hidden(with({std::string(options[which]), std::string(secret) + tail}));
  promise_hidden(with({std::string(assignments[which]) + std::string(secret) + tail}));
  promise_hidden(with({std::string(assignments[which]) + tail + std::string(secret)}));
  for (const std::string scheme : {"redis", "postgresql", "mysql", "mongodb", "etcd", "zookeeper", "s3"}) {
    for (const char* before : {"", "x/", "12/", "12?"}) {
      promise_hidden(with({scheme + "://user:" + before + std::string(secret) + "@db1:6379/0"}));
    }
  }
}

}  // namespace rlock::test
