// SPDX-License-Identifier: Apache-2.0
// A config file, from its text to settings of a verb. Input: a digit, whether every user may read the file; a line with the verb;
// and the file.
#include "cli/options/config.h"
#include "cli/options/option_table.h"
#include "cli/options/parse_words.h"
#include "cli/verbs/dispatch.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"

namespace rlock::test {
namespace {

using namespace rlock::cli;

// The quotes around a URL are missing.
void promise_error_without_password(std::string_view rest)
{
  const std::string secret = "S3cretValue";
  if (rest.find(secret) != std::string_view::npos) {
    return;
  }
  for (const char* front : {"server = ", "server = [", "server ", "", "[", "\"", "[\"", "\"\" = 1\n'"}) {
    const auto entries = parse_toml(front + ("redis://u:" + secret + "@" + std::string(rest)));
    promise(entries || entries.error().text.find(secret) == std::string::npos, "no error quotes a password",
            entries ? "" : entries.error().text);
  }
}

}  // namespace

void fuzz_config(std::string_view bytes)
{
  Input input(bytes);
  const bool is_public = input.flag();
  const auto verb = find_verb(input.line());
  promise_error_without_password(input.rest());
  if (!verb) {
    return;
  }
  OptionTable known((*verb)->name);
  const VerbAction action = add_verb_options(**verb, known);
  const auto settings = read_settings(
      {.path = "/etc/rlock.toml", .text = std::string(input.rest()), .is_public = is_public}, known, all_verbs());
  if (!settings) {
    promise_error(settings.error());
    promise(settings.error().text.starts_with("/etc/rlock.toml:"), "an error names the place", settings.error().text);
    return;
  }
  const std::vector<Given> beside = settings_beside({}, *settings, known);
  if (const Result<Done> applied = apply_options(known, beside, (*verb)->operands); !applied) {
    promise_error(with_source(applied.error(), beside));
  }
}

}  // namespace rlock::test
