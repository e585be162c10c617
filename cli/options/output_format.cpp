// SPDX-License-Identifier: Apache-2.0
#include "cli/options/output_format.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array forms{Choice<Form>{"text", Form::text}, Choice<Form>{"json", Form::json},
                           Choice<Form>{"prometheus", Form::prometheus}};

}  // namespace

void describe_form(Options& options, RawForm& typed)
{
  options.text("-o,--output", typed.output, "text|json|prometheus",
               "json: one object a line; prometheus: for a textfile collector (text)");
  options.flag("--json", typed.json, "the same as --output json");
  options.in("").text("--format", typed.format, "text|json|prometheus", "");
}

Result<Form> resolve_form(const RawForm& typed)
{
  // A config file may say how locks are written on the server.
  const bool is_of_locks = typed.format == "redisson" || typed.format == "string";
  const Text& output = typed.output || is_of_locks ? typed.output : typed.format;
  const Result<Form> form =
      output ? resolve_choice(*output, "--output", forms) : Result(typed.json ? Form::json : Form::text);
  if (form && typed.json && *form != Form::json) {
    return usage("--json and --output " + *output + " cannot both be (leave out --json)");
  }
  return form;
}

}  // namespace rlock::cli
