// SPDX-License-Identifier: Apache-2.0
// rlock completion: the script of a shell, and the answers to its questions.
#include "cli/help/complete.h"
#include "cli/options/options.h"
#include "cli/output/output.h"
#include "cli/verbs/table.h"
#include "completions/scripts.h"

#include "base/text.h"

#include <array>
#include <memory>

namespace rlock::cli {
namespace {

constexpr std::array<std::string_view, 3> examples{
    "rlock completion zsh >~/.zfunc/_rlock",
    "source <(rlock completion bash)",
    "rlock completion fish >~/.config/fish/completions/rlock.fish",
};
constexpr std::array exits{ExitLine{"0", "printed"}, usage_exit, output_exit};

constexpr std::array scripts{
    Choice<std::string_view>{"bash", completions::bash},
    Choice<std::string_view>{"zsh", completions::zsh},
    Choice<std::string_view>{"fish", completions::fish},
};

// The kind; then a line for each candidate, as fish reads them. Names come from a server, and may be anything.
void answer(const Completion& completion)
{
  switch (completion.kind) {
    case Completion::Kind::files: print("files\n"); return;
    case Completion::Kind::command: print("command " + std::to_string(completion.command_at) + "\n"); return;
    case Completion::Kind::words: break;
  }
  print("words\n");
  for (const Candidate& candidate : completion.candidates) {
    if (candidate.word == printable(candidate.word)) {
      print(candidate.word + "\t" + candidate.about + "\n");
    }
  }
}

Result<RunEnd> execute(bool next, const Call& call)
{
  if (next) {
    answer(complete(call.operands, call.environment));
    return ended(ExitCode::ok);
  }
  if (call.operands.size() != 1) {
    return usage("say for which shell: rlock completion bash, zsh or fish");
  }
  const auto script = resolve_choice(call.operands.front(), "completion", scripts);
  if (!script) {
    return script.error();
  }
  print(*script);
  return ended(ExitCode::ok);
}

VerbAction add_options(Options& options)
{
  auto next = std::make_shared<bool>(false);
  options.flag("--next", *next,
               "what the scripts ask: what may come after these WORDs, of which the last is unfinished");
  return [next](const Call& call) { return execute(*next, call); };
}

}  // namespace

const Verb completion_verb{
    .name = "completion",
    .summary = "print the completion script of bash, zsh or fish",
    .synopsis = "SHELL | --next -- WORD...",
    .examples = examples,
    .exits = exits,
    .operands = Operands::anywhere,
    .add_options = add_options,
};

}  // namespace rlock::cli
