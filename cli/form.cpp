// SPDX-License-Identifier: Apache-2.0
#include "cli/form.h"

#include <array>

namespace rlock::cli {
namespace {

constexpr std::array forms{Choice<Form>{"text", Form::text}, Choice<Form>{"json", Form::json},
                           Choice<Form>{"prometheus", Form::prometheus}};

}  // namespace

void describe_form(Options& options, TypedForm& typed)
{
  options.flag("--json", typed.json, "one JSON object a line");
  options.text("--format", typed.format, "text|json|prometheus",
               "prometheus: for a textfile collector (text)");
}

Result<Form> meant_form(const TypedForm& typed)
{
  const Result<Form> form =
      typed.format ? meant_choice(*typed.format, "--format", forms) : Result(typed.json ? Form::json : Form::text);
  if (form && typed.json && *form != Form::json) {
    return usage("--json and --format " + *typed.format + " cannot both be (leave out --json)");
  }
  return form;
}

}  // namespace rlock::cli
