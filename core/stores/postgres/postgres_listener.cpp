// SPDX-License-Identifier: Apache-2.0
#include "stores/postgres/postgres_listener.h"

#include <fcntl.h>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/fd.h"
#include "base/hex.h"
#include "base/text.h"
#include "engine/looking_source.h"

namespace rlock::postgres {
namespace {

// A listener that polls asks its inbox after shortest_poll. Each time that it finds nothing it pauses longer, unless it is among
// the first_places of its lock: its holder and the first in line. It counts as alive for alive_after_poll, and says so again when less
// than say_so_before of it is left, so that most polls write nothing.
constexpr Millis shortest_poll{100};
constexpr Millis longest_poll{500};
constexpr int first_places = 2;
constexpr const char* alive_after_poll = "interval '5 seconds'";
constexpr const char* say_so_before = "interval '2500 milliseconds'";
constexpr Millis poll_timeout{500};      // bounds one poll, in which its thread can do nothing else
constexpr Millis longest_delivery{300};  // of the message that finds out whether a pooler keeps messages away

// A text in SQL, whatever the settings of the server say about quotes and backslashes.
std::string literal(std::string_view text) { return "convert_from(decode('" + hex_of(text) + "', 'hex'), 'UTF8')"; }

// (name, channel, version) of each channel.
std::string rows_of(std::span<const LockChannel> channels)
{
  SystemRng rng;
  std::string rows;
  for (const LockChannel& each : channels) {
    rows += std::string(rows.empty() ? "" : ", ") + "(" + literal(each.lock) + ", " + literal(each.channel) + ", " +
            std::to_string(static_cast<std::int64_t>(rng.next())) + "::bigint)";
  }
  return rows;
}

// Notes the listeners, and gives their locks other versions. `who`: SQL for a row of pid, started and until.
std::string listen_sql(const Tables& tables, std::span<const LockChannel> channels, const std::string& who)
{
  const std::string own = "insert into {lock} (name, version, record) select name, max(version), '' from wanted";
  const std::string shared =
      "insert into {lock} (name, rlock_version, locked_by, lock_until, locked_at) select name, max(version), '', "
      "{now}, "
      "{now} from wanted";
  return on_tables(
      "with me as (" + who + "), wanted(name, channel, version) as (values " + rows_of(channels) +
          "), dead as (delete from {listener} l using (select distinct name from wanted) w where l.name = w.name "
          "and l.pid <> (select pid from me) and not {alive}), mine as (insert into {listener} (name, channel, pid, "
          "started, until) "
          "select w.name, w.channel, me.pid, me.started, me.until from me, wanted w "
          "on conflict (name, channel, pid) do update set started = excluded.started, until = excluded.until) " +
          (tables.are_shared ? shared : own) +
          " group by name order by name on conflict (name) do update "
          "set {version} = excluded.{version} returning pg_backend_pid()",
      tables);
}

constexpr const char* this_connection =
    "select pid, backend_start as started, null::timestamptz as until from pg_stat_get_activity(pg_backend_pid())";

// The rows of a listener. `pid`: SQL.
std::string are_of(const std::string& pid, const std::vector<std::string>& channels)
{
  std::string list = joined(channels, ", ", [&](const std::string& channel) { return literal(channel); });
  return "pid = " + pid + " and channel in (" + list + ")";
}

std::string delete_sql(const Tables& tables, const std::vector<std::string>& channels, const std::string& pid)
{
  return "delete from " + tables.listener + " where " + are_of(pid, channels);
}

std::vector<std::string> names_of(std::span<const LockChannel> channels)
{
  std::vector<std::string> names;
  for (const LockChannel& each : channels) {
    names.emplace_back(each.channel);
  }
  return names;
}

// "CHANNEL\nTEXT"
Message message_in(const std::string& text)
{
  const auto end = std::min(text.find('\n'), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

// Makes the commit of the statements that are sent with it not wait for the disk. They are one transaction without a BEGIN, which an
// error would leave open.
constexpr const char* without_waiting = "select set_config('synchronous_commit', 'off', true); ";

// LISTEN takes effect with the row in the table: both are one transaction. A crash that loses it ends the connection as well.
Result<Rows> listen_on(Connection& connection, const Tables& tables, std::span<const LockChannel> channels,
                       const CallLimits& limit)
{
  std::string sql;
  for (const LockChannel& each : channels) {
    sql += "listen " + notify_channel(each.channel) + "; ";
  }
  return connection.run(sql + without_waiting + listen_sql(tables, channels, this_connection), limit);
}

// Hears by NOTIFY, for as long as the connection lives.
class NotifiedSource final : public MessageSource {
 public:
  NotifiedSource(std::shared_ptr<Connection> connection, Tables tables, std::span<const LockChannel> channels)
      : m_connection(std::move(connection)),
        m_tables(std::move(tables)),
        m_generation(m_connection->generation()),
        m_channels(names_of(channels)),
        m_readable(::open("/dev/null", O_RDONLY | O_CLOEXEC))
  {
  }
  ~NotifiedSource() override
  {
    if (is_connected()) {
      m_connection->send_ahead(std::string(without_waiting) + delete_sql(m_tables, m_channels, "pg_backend_pid()"));
    }
  }
  NotifiedSource(const NotifiedSource&) = delete;
  NotifiedSource& operator=(const NotifiedSource&) = delete;

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    if (!is_connected()) {
      return lost();
    }
    std::ranges::move(names_of(channels), std::back_inserter(m_channels));
    RETURN_IF_ERROR(listen_on(*m_connection, m_tables, channels, limit));
    return Done{};
  }

  Result<std::optional<Message>> next(const CallLimits& limit) override
  {
    if (!is_connected()) {
      return lost();
    }
    ASSIGN_OR_RETURN(const auto text, m_connection->next_notification(is_own(), limit));
    return text ? std::optional(message_in(*text)) : std::nullopt;
  }

  // A message that came with an answer, or the end of the connection, is to be noticed as well.
  [[nodiscard]] int fd() const override
  {
    const bool has_news = !is_connected() || m_connection->has_notification(is_own());
    return has_news ? m_readable.get() : m_connection->fd();
  }

 private:
  [[nodiscard]] bool is_connected() const { return m_connection->generation() == m_generation; }
  [[nodiscard]] Error lost() const
  {
    return {ErrorCode::unreachable, "lost the connection to " + m_connection->where() + " that listens"};
  }
  [[nodiscard]] Connection::Wanted is_own() const
  {
    return [this](const std::string& text) {
      return std::ranges::find(m_channels, message_in(text).channel) != m_channels.end();
    };
  }

  std::shared_ptr<Connection> m_connection;
  const Tables m_tables;
  const std::uint64_t m_generation;
  std::vector<std::string> m_channels;
  const Fd m_readable;  // always
};

// Asks for the messages in its rows of rlock_listener.
class PolledSource final : public record::LookingSource {
 public:
  PolledSource(std::shared_ptr<Connection> connection, Tables tables, const Clock& clock)
      : LookingSource(clock),
        m_connection(std::move(connection)),
        m_tables(std::move(tables)),
        m_number(std::to_string(SystemRng().next() >> 33U))
  {
  }
  ~PolledSource() override
  {
    if (!m_channels.empty()) {
      m_connection->send_ahead(delete_sql(m_tables, m_channels, m_number));
    }
  }
  PolledSource(const PolledSource&) = delete;
  PolledSource& operator=(const PolledSource&) = delete;

  Result<Done> add(std::span<const LockChannel> channels, const CallLimits& limit) override
  {
    for (const LockChannel& each : channels) {
      m_channels.emplace_back(each.channel);
    }
    const std::string who = "select " + m_number + "::int as pid, statement_timestamp() as started, " +
                            "statement_timestamp() + " + alive_after_poll + " as until";
    const auto listening = m_connection->run(listen_sql(m_tables, channels, who), limit);
    m_pause = shortest_poll;
    look_after(m_pause);
    return listening ? Result(Done{}) : Result<Done>(listening.error());
  }

 private:
  Result<Millis> look(const CallLimits& limit) override
  {
    const std::string own = are_of(m_number, m_channels);
    ASSIGN_OR_RETURN(
        const auto rows,
        m_connection->run(
            on_tables(
                "with old as (select name, channel, inbox from {listener} where " + own +
                    " and (inbox <> '{}' or until < statement_timestamp() + " + say_so_before +
                    ") for update), taken as (update {listener} l set inbox = '{}', until = statement_timestamp() + " +
                    alive_after_poll + " from old where l.pid = " + m_number +
                    " and l.name = old.name and l.channel = old.channel returning l.name, l.channel, old.inbox), "
                    "mine as (select name, channel, started from {listener} where " +
                    own +
                    ") select (select string_agg(encode(convert_to(t.text, 'UTF8'), 'hex'), ' ' order by t.at) "
                    "from unnest(taken.inbox) with ordinality t(text, at)), "
                    "(select count(distinct pid) from {listener} o where o.name = mine.name and o.started < "
                    "mine.started) "
                    "from mine left join taken using (name, channel)",
                m_tables),
            {clock().now() + poll_timeout, limit.stop}));
    if (rows.count() == 0) {
      return Error{ErrorCode::unreachable,
                   "the rows of " + m_tables.listener + " at " + m_connection->where() + " are gone"};
    }
    read(rows);
    const bool looks_often = has_messages() || is_among_first(rows);
    m_pause = looks_often ? shortest_poll : std::min(m_pause * 3 / 2, longest_poll);
    return m_pause;
  }

  static bool is_among_first(const Rows& rows)
  {
    for (int row = 0; row < rows.count(); ++row) {
      const std::int64_t listeners_before = leading_number(rows.text(row, 1));
      if (listeners_before < first_places) {
        return true;
      }
    }
    return false;
  }

  void read(const Rows& rows)
  {
    for (int row = 0; row < rows.count(); ++row) {
      const std::string texts = rows.text(row, 0);
      std::string bytes;
      for (std::size_t at = 0; at + 1 < texts.size(); at += 2) {
        if (texts[at] == ' ') {
          hear(message_in(std::exchange(bytes, "")));
          ++at;
        }
        unsigned byte = 0;
        std::from_chars(texts.data() + at, texts.data() + at + 2, byte, 16);
        bytes += static_cast<char>(byte);
      }
      if (!bytes.empty()) {
        hear(message_in(bytes));
      }
    }
  }

  std::shared_ptr<Connection> m_connection;
  const Tables m_tables;
  const std::string m_number;  // stands where others have the number of their server process
  std::vector<std::string> m_channels;
  Millis m_pause = shortest_poll;
};

}  // namespace

// FNV-1a.
std::string notify_channel(std::string_view channel)
{
  std::uint64_t hash = 1469598103934665603U;
  for (const char byte : channel) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  }
  return "rlock_" + hex_of(hash);
}

std::string bytea_of(std::string_view bytes) { return "\\x" + hex_of(bytes); }

bool hears(Connection& listener, Connection& sender, const std::string& channel, Millis within, const Clock& clock,
           const CallLimits& limit)
{
  if (!sender.run("select pg_notify('" + channel + "', '')", limit)) {
    return false;
  }
  const auto heard = listener.next_notification([](const std::string&) { return true; },
                                                {std::min(limit.deadline, clock.now() + within), limit.stop});
  return heard && heard->has_value();
}

// Whether a message from another connection arrives. Behind a pooler in transaction mode, LISTEN stays with a connection to the
// server that serves others then.
bool ListenerFactory::is_delivered(const std::string& channel, const CallLimits& limit) const
{
  Connection sender(m_spec, m_clock);
  return hears(*m_connection, sender, notify_channel(channel), longest_delivery, m_clock, limit);
}

Result<std::unique_ptr<MessageSource>> ListenerFactory::open(std::span<const LockChannel> channels,
                                                             const CallLimits& limit)
{
  if (!m_must_poll) {
    ASSIGN_OR_RETURN(const auto listening, listen_on(*m_connection, m_tables, channels, limit));
    auto source = std::make_unique<NotifiedSource>(m_connection, m_tables, channels);
    if (listening.count() == 0 || listening.columns() != 1) {
      m_connection->drop();
      return Error{ErrorCode::internal, m_connection->where() + " answered nonsense (is it PostgreSQL?)"};
    }
    const std::string pid = listening.text(0, 0);
    if (m_knows_pooler || pid == std::to_string(m_connection->server_pid())) {
      return std::unique_ptr<MessageSource>(std::move(source));
    }
    m_knows_pooler = true;
    m_must_poll = !is_delivered(std::string(channels.front().channel), limit);
    if (!m_must_poll) {
      return std::unique_ptr<MessageSource>(std::move(source));
    }
    source.reset();
    [[maybe_unused]] const auto ended =
        m_connection->run("unlisten *; " + delete_sql(m_tables, names_of(channels), pid), limit);
  }
  auto source = std::make_unique<PolledSource>(m_connection, m_tables, m_clock);
  const auto listening = source->add(channels, limit);
  return listening ? Result(std::unique_ptr<MessageSource>(std::move(source)))
                   : Result<std::unique_ptr<MessageSource>>(listening.error());
}

}  // namespace rlock::postgres
