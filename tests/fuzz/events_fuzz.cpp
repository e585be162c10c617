// SPDX-License-Identifier: Apache-2.0
// The event log of a hostile server, to both outputs. Input: entries between bytes 0x1e, each as the server stores it.
#include "cli/output/json.h"
#include "fuzz/fuzzer.h"
#include "fuzz/shown.h"

namespace rlock::test {

void fuzz_events(std::string_view bytes)
{
  const LockName name = *LockName::parse("stock");
  Input input(bytes);
  EventLogReader at_once;
  EventLogReader one_by_one;
  std::vector<EventLogEntry> entries;
  std::vector<std::string> lines;
  while (!input.empty()) {
    entries.push_back(EventLogEntry::of(std::string(input.until('\x1e'))));
    for (LockEvent& event : one_by_one.read({&entries.back(), 1})) {
      lines.push_back(cli::event_json({name, std::move(event)}));
    }
  }
  std::size_t count = 0;
  for (LockEvent& event : at_once.read(entries)) {
    const cli::ShownEvent shown{name, std::move(event)};
    promise_shown(shown);
    promise(count < lines.size() && lines[count] == cli::event_json(shown),
            "the events do not depend on how the log is cut");
    ++count;
  }
  promise(count == lines.size() && at_once.holder() == one_by_one.holder(),
          "the events do not depend on how the log is cut");
  if (at_once.holder()) {
    promise_shown(cli::ShownEvent{name, at_once.expired(noon)});
  }
}

}  // namespace rlock::test
