// SPDX-License-Identifier: Apache-2.0
// The scripts of lua/ decide about locks. A ScriptHost runs them where the locks are: a Redis server runs them itself
// (redis), for another store rlock runs them on the record of the lock (engine).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
#include "base/clock.h"
#include "base/defaults.h"
#include "base/reply.h"
#include "base/result.h"
#include "lock/calls.h"
#include "lock/requests.h"
#include "lock/store.h"

namespace rlock {

// The first part has the most frequent cases, and ends without an answer in the others.
enum class ScriptPart { first, whole };

// A Lua script of lua/ without its comment lines, and its SHA-1, by which a Redis server knows the script.
struct Script {
  std::string_view name;           // KIND_VERB, or the name of a single script; for messages
  const std::string_view* blocks;  // static; the scripts share the blocks, because most of their text is the same
  std::string_view order;          // the indices of the blocks of the source, one byte each
  std::string_view sha1;           // the SHA-1 of the source: 40 lower-case hex digits, as SCRIPT LOAD returns
  std::uint8_t first_part = 0;     // how many of the blocks are the first part
  // Where there are any, a block is the numbers of its lines, two bytes each: the kinds share most lines, but fewer blocks.
  const char* const* lines = nullptr;

  [[nodiscard]] std::string source(ScriptPart part = ScriptPart::whole) const
  {
    std::string text;
    for (const char index : part == ScriptPart::first ? order.substr(0, first_part) : order) {
      append_block(text, blocks[static_cast<unsigned char>(index)]);
    }
    return text;
  }

  void append_block(std::string& text, std::string_view block) const
  {
    if (lines == nullptr) {
      text += block;
      return;
    }
    for (std::size_t i = 0; i + 1 < block.size(); i += 2) {
      const auto high = static_cast<unsigned char>(block[i]), low = static_cast<unsigned char>(block[i + 1]);
      text.append(lines[high * 256U + low]).append("\n");
    }
  }
};

// A script with what it gets, as words.
struct ScriptCall {
  const Script& script;
  std::vector<std::string> keys;  // KEYS. The first one is the name of the lock
  std::vector<std::string> args;  // ARGV
};

// What a client asks of one lock. The kind and the verb tell the script.
struct VerbRequest {
  LockName lock;
  LockKind kind;
  Owner owner;
  calls::Verb verb;
  NativeFormat beside = NativeFormat::none;  // LockSpec::beside of an acquire

  // nullptr: it is another verb.
  template <typename Verb>
  [[nodiscard]] const Verb* as() const
  {
    return std::get_if<Verb>(&verb);
  }
};

// A verb, or a script of lua/single.
using ScriptRequest = std::variant<VerbRequest, ScriptCall>;

// `is_cluster`: Traits::is_cluster.
ScriptCall call_of(const VerbRequest& request, bool is_cluster);
ScriptCall call_of(const ScriptRequest& request, bool is_cluster);

// A channel of one lock.
struct LockChannel {
  std::string_view lock;  // the name of the lock
  std::string_view channel;
};

// Receives the messages of some channels. Not thread-safe; may move between threads; may outlive its host. Useless after an
// Error.
class MessageSource {
 public:
  virtual ~MessageSource() = default;
  // Adds channels. Every message that is published after the return is received.
  virtual Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) = 0;
  // The next message; nullopt: none arrived by the deadline.
  virtual Result<std::optional<Message>> next(const CallLimits& limit) = 0;
  [[nodiscard]] virtual int fd() const = 0;  // readable: next() may return a message
};

// Ownership: a ScriptStore owns its host. Threads: not thread-safe; may be handed from one thread to another between calls.
// Errors mean "unknown": the request may have happened.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;

  virtual Result<Reply> run(const ScriptRequest& request, const CallLimits& limit) = 0;
  // Runs several scripts and returns the answers in the same order. The default runs them one by one.
  virtual std::vector<Result<Reply>> run_each(std::span<const ScriptRequest> requests, const CallLimits& limit);
  // Whether run_each needs one round trip.
  [[nodiscard]] virtual bool runs_together() const { return false; }
  // Runs one command of Redis on keys of that lock.
  virtual Result<Reply> command(const LockName& lock, std::span<const std::string_view> argv,
                                const CallLimits& limit) = 0;
  // The event log of each lock, the oldest entry first.
  virtual std::vector<Result<std::vector<std::string>>> logs(std::span<const LockName> locks,
                                                             const CallLimits& limit) = 0;
  // After the return the source receives each message to these channels.
  virtual Result<std::unique_ptr<MessageSource>> subscribe(std::span<const LockChannel> channels,
                                                           const CallLimits& limit) = 0;

  // The names, sorted, that match the glob: of what may be a held lock, or has an event log, or of what the store keeps something
  // when it is free. The default of the latter is for stores where nothing outlives the event log.
  virtual Result<std::vector<std::string>> find_locks(std::string_view glob, const PerAnswer& limits) = 0;
  virtual Result<std::vector<std::string>> find_logs(std::string_view glob, const PerAnswer& limits) = 0;
  virtual Result<std::vector<std::string>> find_remembered(std::string_view glob, const PerAnswer& limits)
  {
    return find_logs(glob, limits);
  }

  // Waits until LockSpec::sync is satisfied for the last write of this host. The default is for stores without replicas.
  virtual Result<Done> await_replicas(const LockSpec& spec, const CallLimits&)
  {
    return Error{ErrorCode::config, "--sync " + std::to_string(spec.sync.replicas) +
                                        ": rlock cannot ask this store for its replicas (leave out --sync)"};
  }
  // LockStore::erase. The default deletes the keys of the lock.
  virtual Result<Done> erase(const LockName& lock, const CallLimits& limit);
  // As of LockStore.
  [[nodiscard]] virtual std::optional<Millis> lasts_without_keeper() const { return std::nullopt; }
  virtual bool keep_leases() { return true; }
  // LockStore::check_server.
  virtual Result<std::vector<Finding>> check_server(const CallLimits&) { return std::vector<Finding>(); }
  // Drops the connection; the next request opens another one.
  virtual void drop_connection() = 0;

  // LockStore::traits.
  [[nodiscard]] virtual Traits traits() const = 0;
  // The lease of this owner, where it is that of its presence in the store (engine/presence.h) as of the last answer; nullopt:
  // the ttl that was asked for, from the moment of the sending.
  [[nodiscard]] virtual std::optional<LeaseTerm> lease_of(const Owner&) const { return std::nullopt; }
  // How much earlier than the sending of a request the lease that it got may have begun.
  [[nodiscard]] virtual Millis time_behind() const { return Millis{0}; }
};

}  // namespace rlock
