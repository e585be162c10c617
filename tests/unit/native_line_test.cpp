// SPDX-License-Identifier: Apache-2.0
// Which contenders a record needs in the line of native clients.
#include "engine/native_line.h"
#include "engine/lock_keys.h"
#include "engine/record_codec.h"
#include "support/test.h"

using namespace rlock;
using namespace rlock::record;

namespace {

constexpr LineFormat read_write_line{NativeFormat::curator, true};

const LockName lock = *LockName::parse("k");

class NoLine : public NativeLine {
 public:
  [[nodiscard]] LineFormat format() const override { return NativeFormat::etcd; }
  [[nodiscard]] Result<Done> check_name(const LockName&) const override { return Done{}; }
  [[nodiscard]] std::string contender_for(const PresenceId& presence) const override { return "at-" + presence; }
  Result<LineView> look(const LockName&, const LookFor&, const CallLimits&) override { return LineView{}; }
  bool tell_when_gone(const LockName&, const std::string&, std::int64_t, const News&, const CallLimits&) override
  {
    return false;
  }
};

class BoundLine final : public NoLine {
 public:
  [[nodiscard]] bool binds_sessions() const override { return true; }
};

class SharedLine final : public NoLine {
 public:
  [[nodiscard]] LineFormat format() const override { return read_write_line; }
  [[nodiscard]] bool binds_sessions() const override { return true; }
};

// The holder, and the waiters in their order, each with the presence "p" and its name.
LockRecord record_of(const std::string& holder, const std::vector<std::string>& waiters)
{
  LockRecord record;
  const LockKeys names(lock);
  put_beside(record, NativeFormat::etcd);
  const auto bind = [&](const std::string& owner) {
    record.bindings[owner] = {{.id = "p" + owner, .lease_ms = 1000, .keeping = Keeping::kept}};
  };
  if (!holder.empty()) {
    record.keys[names.lock] = {.data = Hash{{holder, "1"}}, .expires = 5000};
    record.keys[names.holder] = {.data = Hash{{holder, "info"}}, .expires = 5000};
    bind(holder);
  }
  SortedSet queue;
  for (const std::string& waiter : waiters) {
    queue.add(waiter, static_cast<double>(queue.order.size()) + 10);
    bind(waiter);
  }
  if (!waiters.empty()) {
    record.keys[names.queue] = {.data = queue, .expires = 5000};
  }
  return record;
}

// What a change does: "+at-pa(pa)" for a contender that comes, "~" for one that gets another presence, "-" for one that goes.
std::string show(const LineChange& change)
{
  std::string text;
  if (change.stand) {
    text += (change.stand->is_new ? "+" : "~") + change.stand->name + "(" + change.stand->presence + ")";
  }
  for (const std::string& each : change.leaves) {
    text += (text.empty() ? "-" : " -") + each;
  }
  return text;
}

std::string changed(LockRecord& record, const std::optional<LineView>& view = std::nullopt)
{
  return show(change_line(record, lock, NoLine(), view, {}));
}

// By a commit of this owner, where each contender is bound to a session.
std::string changed_by(LockRecord& record, const std::string& owner)
{
  const Committer committer{.owner = owner, .presence = owner.empty() ? "" : "p" + owner};
  return show(change_line(record, lock, BoundLine(), std::nullopt, committer));
}

// The line of `from`, in the record of `to`.
LockRecord with_line(LockRecord to, const LockRecord& from)
{
  to.keys["rlock:native"] = from.keys.at("rlock:native");
  return to;
}

}  // namespace

TEST_CASE("native line: the holder stands in it, then the first waiter, and no other one")
{
  LockRecord record = record_of("a", {"b", "c"});
  CHECK(changed(record) == "+at-pa(pa)");
  CHECK(changed(record) == "+at-pb(pb)");
  CHECK(changed(record).empty());
  CHECK(contender_of(record, "a") == "at-pa");
  CHECK(contender_of(record, "c").empty());
  CHECK_FALSE(is_native(record, {.name = "at-pb"}));
  CHECK(is_native(record, {.name = "at-pc"}));

  LockRecord handed_over = with_line(record_of("b", {"c"}), record);
  CHECK(changed(handed_over) == "+at-pc(pc) -at-pa");
  LockRecord gave_up = with_line(record_of("b", {}), handed_over);
  CHECK(changed(gave_up) == "-at-pc");
  LockRecord free = with_line(record_of("", {}), gave_up);
  CHECK(changed(free) == "-at-pb");
  CHECK(beside_of(free) == NativeFormat::etcd);
}

TEST_CASE("native line: the contender of a holder gets the presence with the longest lease")
{
  LockRecord record = record_of("a", {});
  REQUIRE(changed(record) == "+at-pa(pa)");
  auto& bound = record.bindings["a"];
  bound.push_back({.id = "short", .lease_ms = 500, .keeping = Keeping::unkept});
  CHECK(changed(record).empty());
  bound.push_back({.id = "long", .lease_ms = 2000, .keeping = Keeping::unkept});
  CHECK(changed(record) == "~at-pa(long)");
  CHECK(changed(record).empty());
  std::erase_if(bound, [](const BoundPresence& each) { return each.id == "long"; });
  CHECK(changed(record) == "~at-pa(pa)");
}

TEST_CASE("native line: a waiter in front of a new holder lets it pass, and stands again later")
{
  LockRecord record = record_of("", {"b"});
  REQUIRE(changed(record) == "+at-pb(pb)");
  LockRecord taken = with_line(record_of("z", {"b"}), record);
  const LineView view{.first = Contender{.name = "at-pb", .order = 3}, .own = {}, .next = {}, .state = 4};
  CHECK(changed(taken, view) == "+at-pz(pz) -at-pb");
  CHECK(changed(taken) == "+at-pb(pb)");
}

TEST_CASE("native line: a hold ends with the presence of its contender")
{
  LockRecord record = record_of("a", {"b"});
  REQUIRE(changed(record) == "+at-pa(pa)");
  record.bindings["a"].push_back({.id = "other", .lease_ms = 500, .keeping = Keeping::kept});
  end_without_contender(record, lock, {"other"});
  CHECK(exclusive_holder(record, lock) == "a");
  end_without_contender(record, lock, {"pa"});
  CHECK(exclusive_holder(record, lock).empty());
  CHECK(contender_of(record, "a").empty());
  CHECK(first_waiter(record, lock) == "b");
}

TEST_CASE("native line: a native client is shown as the holder, and the holder by the record as the first waiter")
{
  LockRecord record = record_of("a", {"b"});
  show_native(record, lock, {.name = "4d2", .order = 7, .is_lock = true, .lasts = Millis{3000}}, 1'000'000);
  CHECK(exclusive_holder(record, lock) == "4d2");
  CHECK(record.keys.at("k").expires == 4000);
  CHECK(first_waiter(record, lock) == "a");
}

TEST_CASE("native line: holders of shared locks are no exclusive ones")
{
  LockRecord record;
  record.keys["k"] = {.data = Hash{{"mode", "read"}, {"a", "1"}}, .expires = 1};
  CHECK(exclusive_holder(record, lock).empty());
  record.keys["k"] = {.data = Hash{{"mode", "write"}, {"a:write", "1"}}, .expires = 1};
  CHECK(exclusive_holder(record, lock) == "a");
  record.keys["k"] = {.data = std::string("s"), .expires = 1};
  CHECK(exclusive_holder(record, lock) == "s");
}

TEST_CASE("native line: where contenders are bound to sessions, each owner makes its own one, and keeps it")
{
  LockRecord record = record_of("a", {"b", "c"});
  CHECK(changed_by(record, "").empty());
  CHECK(changed_by(record, "c").empty());
  CHECK(changed_by(record, "b") == "+at-pb(pb)");
  CHECK(changed_by(record, "b").empty());
  CHECK(changed_by(record, "a") == "+at-pa(pa)");
  record.bindings["a"].push_back({.id = "long", .lease_ms = 2000, .keeping = Keeping::unkept});
  CHECK(changed_by(record, "a").empty());
  LockRecord gone = with_line(record_of("", {"c"}), record);
  CHECK(changed_by(gone, "") == "-at-pb -at-pa");
  CHECK(changed_by(gone, "c") == "+at-pc(pc)");
}

TEST_CASE("native line: an owner that lets its hold go keeps its contender until a commit removes it")
{
  LockRecord record = record_of("a", {});
  REQUIRE(changed(record) == "+at-pa(pa)");
  end_hold(record, lock, "a");
  CHECK(exclusive_holder(record, lock).empty());
  CHECK(contender_of(record, "a") == "at-pa");
  CHECK(changed(record) == "-at-pa");
}

namespace {

void bind(LockRecord& record, const std::string& owner)
{
  record.bindings[owner] = {{.id = "p" + owner, .lease_ms = 1000, .keeping = Keeping::kept}};
}

// A read-write lock with these readers, for which this writer waits.
LockRecord read_by(const std::vector<std::string>& readers, const std::string& writer)
{
  const LockKeys names(lock, Writer{});
  LockRecord record;
  put_beside(record, read_write_line);
  Hash hash{{"mode", "read"}};
  Hash about;
  for (const std::string& reader : readers) {
    hash.emplace_back(reader, "1");
    about.emplace_back(reader, "info of " + reader);
    bind(record, reader);
  }
  record.keys[names.lock] = {.data = hash, .expires = 5000};
  record.keys[names.holder] = {.data = about, .expires = 5000};
  if (!writer.empty()) {
    SortedSet queue;
    queue.add(writer, 10);
    record.keys[names.queue] = {.data = queue, .expires = 5000};
    record.keys[names.waiters] = {.data = Hash{{writer, "info"}, {"wish:" + writer, "write"}}, .expires = 5000};
    bind(record, writer);
  }
  return record;
}

LineChange changed_by_reader(LockRecord& record, const std::string& owner, const std::string& first = {})
{
  std::optional<LineView> view;
  if (!first.empty()) {
    view = LineView{.first = Contender{.name = first}, .own = {}, .next = {}};
  }
  return change_line(record, lock, SharedLine(), view, {.owner = owner, .presence = "p" + owner});
}

}  // namespace

TEST_CASE("native line: each reader of a read-write lock stands in it, and the first waiter, each as what it asked for")
{
  LockRecord record = read_by({"a", "b"}, "w");
  CHECK(beside_of(record) == read_write_line);
  CHECK(holders_of(record, lock) == std::vector<std::string>{"a", "b"});
  const LineChange reader = changed_by_reader(record, "a");
  CHECK(show(reader) == "+at-pa(pa)");
  CHECK(reader.stand->reads);
  CHECK(show(changed_by_reader(record, "b")) == "+at-pb(pb)");
  const LineChange writer = changed_by_reader(record, "w");
  CHECK(show(writer) == "+at-pw(pw)");
  CHECK_FALSE(writer.stand->reads);
  LockRecord left = with_line(read_by({"b"}, "w"), record);
  CHECK(show(changed_by_reader(left, "")) == "-at-pa");
}

TEST_CASE("native line: a waiter lets a reader pass that holds the lock behind it, and stays behind the others")
{
  LockRecord record = read_by({"a", "b"}, "w");
  REQUIRE(show(changed_by_reader(record, "w")) == "+at-pw(pw)");
  CHECK(show(changed_by_reader(record, "", "at-pw")).empty());
  CHECK(show(changed_by_reader(record, "a", "at-pw")) == "+at-pa(pa) -at-pw");
}

TEST_CASE("native line: native readers are shown beside those of rlock, and a native writer alone")
{
  LockRecord record = read_by({"a"}, "");
  REQUIRE(show(changed_by_reader(record, "a")) == "+at-pa(pa)");
  LockRecord shared = record;
  const Contender own{.name = "at-pa", .order = 3};
  const Contender native{.name = "_c_n", .order = 4, .is_lock = true};
  show_holders(shared, lock,
               {.first = {}, .own = {}, .next = {}, .holders = {own, native}, .is_read_by_holders = true});
  CHECK(holders_of(shared, lock) == std::vector<std::string>{"a", "_c_n"});
  CHECK(first_waiter(shared, lock).empty());
  LockRecord alone = record;
  show_holders(alone, lock, {.first = {}, .own = {}, .next = {}, .holders = {native}});
  CHECK(exclusive_holder(alone, lock) == "_c_n");
  CHECK(first_waiter(alone, lock) == "a");
}
