// SPDX-License-Identifier: Apache-2.0
#include "stores/s3/s3_backend.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include "engine/name_glob.h"
#include "stores/s3/s3_access.h"
#include "stores/s3/s3_checks.h"
#include "stores/s3/s3_listener.h"
#include "stores/s3/s3_probe.h"

namespace rlock::s3 {
namespace {

using record::Backend;
using record::Change;
using record::Commit;
using record::Committed;
using record::Conflict;
using record::Snapshot;
using record::Version;

constexpr std::size_t reads_at_once = 16;

// This host's clock may run faster than the store's by this part.
constexpr int drift_divisor = 500;

class S3Backend final : public Backend {
 public:
  S3Backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
      : m_rng(std::move(rng)), m_connection(std::move(spec), clock)
  {
  }

  Result<Snapshot> read(std::string_view name, const CallLimits& limit) override
  {
    m_seen.reset();
    RETURN_IF_ERROR(check_name(name, m_connection));
    if (std::exchange(m_asks_for_conditions, false)) {
      RETURN_IF_ERROR(check_conditions(m_connection, *m_rng, limit));
      m_is_fit = true;
    }
    ASSIGN_OR_RETURN(auto answer, m_connection.ask(read_request(name), limit));
    ASSIGN_OR_RETURN(auto snapshot, take(std::move(answer), name));
    return snapshot;
  }

  // Several at a time.
  Result<record::StatesAndLogs> read_each(std::span<const std::string_view> names, bool with_logs,
                                          const CallLimits& limit) override
  {
    record::StatesAndLogs states;
    while (!names.empty()) {
      const auto some = names.first(std::min(reads_at_once, names.size()));
      names = names.subspan(some.size());
      std::vector<Request> requests;
      for (const std::string_view name : some) {
        RETURN_IF_ERROR(check_name(name, m_connection));
        requests.push_back(read_request(name));
      }
      auto answers = m_connection.ask_all(requests, limit);
      for (std::size_t i = 0; i < some.size(); ++i) {
        ASSIGN_OR_RETURN(auto answer, std::move(answers[i]));
        ASSIGN_OR_RETURN(auto snapshot, take(std::move(answer), some[i]));
        record::StateAndLog known{.state = std::move(snapshot)};
        if (with_logs) {
          known.log = log_of(m_seen->object);
        }
        states.insert_or_assign(std::string(some[i]), std::move(known));
      }
    }
    m_seen.reset();
    return states;
  }

  Result<Commit> write_if(std::string_view name, const Version& version, const Change& change,
                          const CallLimits& limit) override
  {
    if (!m_seen || m_seen->lock != name || m_seen->etag != version) {
      RETURN_IF_ERROR(read(name, limit));
      if (m_seen->etag != version) {
        return Commit{Conflict{}};
      }
    }
    SeenObject seen = *std::exchange(m_seen, std::nullopt);
    LockObject next = seen.object;
    const std::int64_t now_us = time_at(m_connection.clock().now(), seen.time_us, seen.at);
    apply(change, now_us, next, *m_rng);
    ASSIGN_OR_RETURN(const auto answer, m_connection.ask(write_request(seen, next, m_rng->next()), limit));
    if (answer.kind != Answer::Kind::done) {
      return Commit{Conflict{}};
    }
    if (answer.etag.empty()) {
      return Error{ErrorCode::config, m_connection.where() + ": a write is answered without an ETag"};
    }
    seen.etag = answer.etag;
    seen.object = std::move(next);
    m_seen = std::move(seen);
    return Commit{Committed{m_seen->etag}};
  }

  Result<std::unique_ptr<MessageSource>> listen(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    auto source =
        std::make_unique<PollingSource>(m_connection.spec(), m_connection.clock(), std::make_unique<SystemRng>());
    RETURN_IF_ERROR(source->add(channels, limit));
    return std::unique_ptr<MessageSource>(std::move(source));
  }

  Result<std::vector<std::string>> events(std::string_view name, const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(auto answer, m_connection.ask(read_request(name), limit));
    ASSIGN_OR_RETURN(const auto seen, seen_in(std::move(answer), name, m_connection));
    return log_of(seen.object);
  }

  // A list tells no more than keys, so each lock may be held, and may have a log.
  Result<std::vector<std::string>> list(std::string_view glob, Which, const CallLimits& limit) override
  {
    ASSIGN_OR_RETURN(auto names, lock_names(m_connection, limit));
    record::keep_matching(names, glob);
    std::ranges::sort(names);
    return names;
  }

  Result<Done> erase(std::string_view name, const CallLimits& limit) override
  {
    m_seen.reset();
    RETURN_IF_ERROR(m_connection.ask({.method = Request::Method::remove, .key = key_of_lock(name)}, limit));
    return Done{};
  }

  void ask_for_rights() override { m_asks_for_conditions = !m_is_fit; }
  Result<std::vector<Finding>> check_server(const CallLimits& limit) override
  {
    return s3::check_server(m_connection, *m_rng, limit);
  }
  [[nodiscard]] Millis time_behind() const override { return date_step + m_connection.spec().clock_skew; }
  void drop_connection() override
  {
    m_seen.reset();
    m_connection.drop();
  }

 private:
  static std::vector<std::string> log_of(const LockObject& object)
  {
    std::vector<std::string> entries;
    for (const auto& [id, entry] : object.events) {
      entries.push_back(entry);
    }
    return entries;
  }

  // The store's clock at `now`, after it was `time_us` at `at`, or less.
  static std::int64_t time_at(Instant now, std::int64_t time_us, Instant at)
  {
    const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(now - at).count();
    return time_us + passed - passed / drift_divisor;
  }

  // The clock of the store was at m_time.time_us when that answer was heard, so it has moved on by what has passed until this
  // request was sent. That is finer than the whole seconds of this answer.
  Result<Snapshot> take(Answer answer, std::string_view name)
  {
    const Instant sent_at = answer.sent_at;
    ASSIGN_OR_RETURN(auto seen, seen_in(std::move(answer), name, m_connection));
    if (m_time_us > 0) {
      seen.time_us = std::max(seen.time_us, time_at(sent_at, m_time_us, m_time_at));
    }
    m_time_us = seen.time_us;
    m_time_at = seen.at;
    m_seen = std::move(seen);
    return Snapshot{.version = m_seen->etag,
                    .bytes = m_seen->object.record,
                    .time_us = m_seen->time_us,
                    .listeners = living_channels(m_seen->object, m_seen->time_us)};
  }

  std::unique_ptr<Rng> m_rng;
  Connection m_connection;
  std::optional<SeenObject> m_seen;
  std::int64_t m_time_us = 0;  // of the store at m_time_at, as the last answer told; 0: none came yet
  Instant m_time_at;
  bool m_asks_for_conditions = false;
  bool m_is_fit = false;
};

}  // namespace

std::unique_ptr<Backend> open_backend(ConnectionSpec spec, const Clock& clock, std::unique_ptr<Rng> rng)
{
  return std::make_unique<S3Backend>(std::move(spec), clock, std::move(rng));
}

}  // namespace rlock::s3
