// SPDX-License-Identifier: Apache-2.0
// rlock completion: prints the completion script of a shell, and the candidates that the script asks for.
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
constexpr std::array exits{ExitLine{ExitCode::ok, "printed"}};

struct RawCompletion {
  bool next = false;
};

constexpr std::array scripts{
    Choice<std::string_view>{"bash", completions::bash},
    Choice<std::string_view>{"zsh", completions::zsh},
    Choice<std::string_view>{"fish", completions::fish},
};

// Prints the kind, then a line for each candidate, in the format of fish. Leaves out names that are not safe to print, because
// they come from a server.
void print_completion(const Completion& completion)
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

Result<RunEnd> execute(const RawCompletion& raw, const Call& call)
{
  if (raw.next) {
    print_completion(complete(call.operands, call.environment));
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

void add_completion_options(Options& options, RawCompletion& raw)
{
  options.flag("--next", raw.next,
               "print what may follow these WORDs, of which the last is unfinished; the scripts call rlock with it");
}

}  // namespace

const Verb completion_verb{
    .name = "completion",
    .summary = "print the completion script of bash, zsh or fish",
    .synopsis = "SHELL | --next -- WORD...",
    .examples = examples,
    .own_exits = exits,
    .common_exits = printing_codes,
    .operands = Operands::anywhere,
    .add_options = bound<RawCompletion, add_completion_options, execute>,
};

}  // namespace rlock::cli
