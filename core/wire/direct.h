// SPDX-License-Identifier: Apache-2.0
// A Transport to one server at a fixed place: connects at the first call and again after a failure.
#pragma once

#include "wire/connection.h"
#include "wire/transport.h"

#include <optional>
#include <string>

namespace rlock {

class Direct final : public Transport {
 public:
  // `clock` must outlive it.
  Direct(Endpoint endpoint, const Clock& clock);

  Result<Reply> call(std::string_view route_key, std::span<const std::string_view> argv,
                     const Limit& limit) override;
  Result<Subscription> subscribe(std::string_view route_key,
                                 std::span<const std::string_view> channels,
                                 const Limit& limit) override;
  void forget() override;

 private:
  Endpoint m_endpoint;
  const Clock& m_clock;
  std::optional<Connection> m_connection;
};

}  // namespace rlock
