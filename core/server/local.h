// SPDX-License-Identifier: Apache-2.0
// A Transport to the private server of `local:`. Before each connection the transport looks for that server, and starts the
// server if it does not run. After a crash the server comes back with the locks of its append-only file.
#pragma once

#include "server/direct.h"
#include "server/local_server.h"

namespace rlock {

class Local final : public Direct {
 public:
  // `clock` must outlive the transport.
  Local(LocalSpec spec, const Clock& clock);

  // The errors are those of local_server.
  Result<Done> connect(const CallLimits& limit) override;
  Result<Subscription> subscribe(std::span<const std::string_view> channels, const CallLimits& limit) override;

 private:
  const LocalSpec m_spec;
};

}  // namespace rlock
