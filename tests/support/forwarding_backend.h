// SPDX-License-Identifier: Apache-2.0
// A backend of the record engine that passes each call on to a real one. A test overrides the call at which something happens.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>
#include "engine/record_backend.h"

namespace rlock::test {

class ForwardingPresences : public record::Presences {
 public:
  // `real` must outlive it.
  explicit ForwardingPresences(record::Presences& real) : m_real(real) {}
  Result<record::Presence> make(Millis lease, record::Keeping keeping, const CallLimits& limit) override
  {
    return m_real.make(lease, keeping, limit);
  }
  Result<record::Proof> prove(const record::PresenceId& id, const CallLimits& limit) override
  {
    return m_real.prove(id, limit);
  }
  Result<std::vector<record::PresenceId>> gone(std::span<const record::PresenceId> ids,
                                               const CallLimits& limit) override
  {
    return m_real.gone(ids, limit);
  }
  Result<Done> remove(const record::PresenceId& id, const CallLimits& limit) override
  {
    return m_real.remove(id, limit);
  }

 private:
  record::Presences& m_real;
};

class ForwardingBackend : public record::Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<record::Backend> real) : m_real(std::move(real)) {}
  Result<record::Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    return m_real->read(name, limit);
  }
  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    return m_real->read_each(names, with_logs, limit);
  }
  Result<record::Commit> write_if(std::string_view name, const record::Version& version, const record::Change& change,
                                  const CallLimits& limit) override
  {
    return m_real->write_if(name, version, change, limit);
  }
  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    return m_real->listen(channels, limit);
  }
  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    return m_real->events(name, limit);
  }
  Result<std::vector<std::string>> list(std::string_view glob, Which which, const CallLimits& limit) override
  {
    return m_real->list(glob, which, limit);
  }
  record::Presences* presences() override { return m_real->presences(); }
  std::vector<record::NativeLine*> native_lines() override { return m_real->native_lines(); }
  void drop_connection() override { m_real->drop_connection(); }

 private:
  const std::unique_ptr<record::Backend> m_real;
};

}  // namespace rlock::test
