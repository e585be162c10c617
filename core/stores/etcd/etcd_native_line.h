// SPDX-License-Identifier: Apache-2.0
// The lines in which etcdctl lock and the lock service of etcd wait (the package concurrency of etcd's clientv3). Private to
// stores/etcd.
//
// The line of the lock NAME is all keys below NAME/, outside the prefix of rlock, in the order of their create revisions. A
// client's own key is NAME/LEASE, with that lease, in hexadecimal digits without leading zeros.
#pragma once

#include <string>
#include "engine/native_line.h"
#include "stores/etcd/etcd_listener.h"

namespace rlock::etcd {

class EtcdNativeLine final : public record::NativeLine {
 public:
  // It must outlive this.
  explicit EtcdNativeLine(Listeners& shared) : m_shared(shared) {}

  [[nodiscard]] record::LineFormat format() const override { return NativeFormat::etcd; }
  [[nodiscard]] Result<Done> check_name(const LockName& lock) const override;
  [[nodiscard]] std::string contender_for(const record::PresenceId& presence) const override;
  Result<record::LineView> look(const LockName& lock, const record::LookFor& what, const CallLimits& limit) override;
  bool tell_when_gone(const LockName& lock, const std::string& contender, std::int64_t since, const News& news,
                      const CallLimits& limit) override;

  // The first key in the line.
  static Range first_of(std::string_view lock);
  // Adds the change to the transaction.
  static void change(std::string_view lock, const record::LineChange& change, Txn& txn);

 private:
  Listeners& m_shared;
};

}  // namespace rlock::etcd
