// SPDX-License-Identifier: Apache-2.0
#include "stores/zookeeper/zookeeper_native_line.h"

#include <algorithm>
#include <array>
#include "base/text.h"
#include "stores/zookeeper/zookeeper_layout.h"

namespace rlock::zookeeper {
namespace {

using record::Contender;
using record::LineChange;
using record::LineFormat;
using record::LineView;
using record::LookFor;

// What stands in a node before its number. Curator sorts by what is behind the part without the first dash.
constexpr std::string_view mutex_mark = "-lock-";
constexpr std::string_view reader_mark = "-__READ__";
constexpr std::string_view writer_mark = "-__WRIT__";
constexpr std::string_view kazoo_mark = "__lock__";
constexpr std::string_view data_of_contender = "rlock";  // contenders() of kazoo shows it

std::string_view mark_of(LineFormat format, bool reads)
{
  if (format.has_readers) {
    return reads ? reader_mark : writer_mark;
  }
  return format.clients == NativeFormat::kazoo ? kazoo_mark : mutex_mark;
}

std::string_view sorting_part(std::string_view mark)
{
  mark.remove_prefix(mark.starts_with('-') ? 1 : 0);
  return mark;
}

bool has_mark(std::string_view node, std::string_view mark)
{
  return node.find(sorting_part(mark)) != std::string_view::npos;
}
bool is_writer(std::string_view node) { return has_mark(node, writer_mark); }
bool is_reader(std::string_view node) { return has_mark(node, reader_mark); }

bool is_number(std::string_view text)
{
  constexpr std::size_t digits = 10;
  text.remove_prefix(text.starts_with('-') ? 1 : 0);  // more than 2^31 contenders have been there
  return text.size() == digits && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view order_of(LineFormat format, std::string_view node)
{
  const std::string_view mark = sorting_part(mark_of(format, is_reader(node)));
  const auto at = node.rfind(mark);
  return at == std::string_view::npos ? node : node.substr(at + mark.size());
}

}  // namespace

bool is_contender(LineFormat format, std::string_view node)
{
  const std::string_view order = order_of(format, node);
  return order.size() < node.size() && is_number(order);
}

std::vector<std::string> line_in(LineFormat format, std::vector<std::string> children)
{
  if (format.clients == NativeFormat::kazoo) {
    std::erase_if(children, [](const std::string& child) { return !is_contender(NativeFormat::kazoo, child); });
  }
  std::ranges::sort(children, {}, [&](const std::string& child) {
    const bool comes_second = format.has_readers && is_reader(child);  // of a writer that also reads
    return std::pair(order_of(format, child), comes_second);
  });
  return children;
}

std::string contender_in(LineFormat format, std::string_view node)
{
  const auto at = is_contender(format, node) ? node.rfind(mark_of(format, is_reader(node))) : std::string_view::npos;
  return std::string(at == 0 ? node : node.substr(0, at));
}

std::string first_in(LineFormat format, const std::vector<std::string>& line, const std::string& own, bool reads)
{
  const auto node =
      own.empty() ? line.end()
                  : std::ranges::find(line, own, [&](const std::string& each) { return contender_in(format, each); });
  const bool is_shared = format.has_readers && (node == line.end() ? reads : is_reader(*node));
  const auto first =
      std::find_if(line.begin(), node, [&](const std::string& each) { return !is_shared || is_writer(each); });
  return first == line.end() ? std::string() : *first;
}

std::vector<std::string> holding_in(const std::vector<std::string>& line)
{
  if (!line.empty() && is_writer(line.front())) {
    return {line.front()};
  }
  std::vector<std::string> readers;
  std::copy_if(line.begin(), std::ranges::find_if(line, is_writer), std::back_inserter(readers), is_reader);
  return readers;
}

std::string line_path(std::string_view chroot, std::string_view lock)
{
  return std::string(chroot).append(lock.starts_with('/') ? "" : "/").append(lock);
}

Result<Done> NativeNodes::check_name(const LockName& lock) const
{
  const std::string path = path_of(lock.text());
  const std::string own = Layout(m_chroot).root();
  const bool is_own = (path + "/").starts_with(own + "/") || own.starts_with(path + "/");
  if (is_path(path) && !is_own) {
    return Done{};
  }
  const std::string start = "the lock " + printable(lock.text()) + " cannot have the format " +
                            std::string(name_of(m_format.clients)) + ", because ";
  return Error{ErrorCode::config,
               is_own ? start + "rlock keeps its own nodes below " + printable(own) + " (give the lock another name)"
                      : start + printable(path) + " is no path of a node (leave out empty parts, . and ..)"};
}

std::string NativeNodes::contender_for(const record::PresenceId& presence) const
{
  if (m_format.clients != NativeFormat::kazoo) {
    return "_c_" + presence;
  }
  std::string digits = presence;
  std::erase(digits, '-');
  return digits;
}

// Empty: the last look did not find it.
std::string NativeNodes::node_of(std::string_view contender) const
{
  const auto node =
      std::ranges::find(m_nodes, contender, [this](const std::string& each) { return contender_in(m_format, each); });
  return node == m_nodes.end() ? std::string() : *node;
}

Result<Done> NativeNodes::read_line(std::string_view lock, const CallLimits& limit)
{
  const std::string path = path_of(lock);
  const std::array questions{sync(path), get_children(path)};
  ASSIGN_OR_RETURN(const auto answers, m_shared.client->ask(questions, limit));
  const Answer& children = answers[1];
  if (!children.is_ok() && children.code != Code::no_node) {
    return error_of(children.code, m_shared.client->where());
  }
  m_lock = lock;
  m_has_directory = children.is_ok();
  m_nodes = line_in(m_format, children.children);
  return Done{};
}

// The line of the last look, by the names alone.
LineView NativeNodes::named_view(const LookFor& what) const
{
  LineView view;
  for (const std::string& node : m_nodes) {
    const Contender contender{.name = contender_in(m_format, node)};
    std::optional<Contender>& place = contender.name == what.own ? view.own : view.next;
    place = place ? place : contender;
  }
  const std::string first = first_in(m_format, m_nodes, what.own, what.reads);
  if (!first.empty()) {
    view.first = Contender{.name = contender_in(m_format, first)};
  }
  for (const std::string& node : m_format.has_readers ? holding_in(m_nodes) : std::vector<std::string>()) {
    view.holders.push_back({.name = contender_in(m_format, node)});
    view.is_read_by_holders = is_reader(node);
  }
  if (what.waiting) {
    view.waiting = waiting_behind(view);
  }
  return view;
}

// By the line of the last look.
std::vector<Contender> NativeNodes::waiting_behind(const LineView& view) const
{
  std::vector<Contender> waiting;
  for (const std::string& node : m_nodes) {
    Contender contender{.name = contender_in(m_format, node), .is_lock = true, .reads = is_reader(node)};
    const bool holds = m_format.has_readers
                           ? std::ranges::find(view.holders, contender.name, &Contender::name) != view.holders.end()
                           : node == m_nodes.front();
    if (!holds && is_contender(m_format, node) && waiting.size() < record::most_waiting_shown) {
      waiting.push_back(std::move(contender));
    }
  }
  return waiting;
}

// The answer may be that of a member that is behind. But no client gets in front of a contender that is there, so the view is right
// about its own contender, if that is in it.
Result<LineView> NativeNodes::look(const LockName& lock, const LookFor& what, const CallLimits& limit)
{
  RETURN_IF_ERROR(read_line(lock.text(), limit));
  LineView view = named_view(what);
  std::vector<Contender*> asked;
  for (std::optional<Contender>* const each : {&view.first, &view.own}) {
    if (*each) {
      asked.push_back(&**each);
    }
  }
  if (what.holders) {
    std::ranges::transform(view.holders, std::back_inserter(asked), [](Contender& each) { return &each; });
  }
  std::vector<Operation> questions;
  std::ranges::transform(asked, std::back_inserter(questions), [&](const Contender* each) {
    return exists(path_of(lock.text()) + "/" + node_of(each->name), false);
  });
  ASSIGN_OR_RETURN(const auto answers,
                   questions.empty() ? std::vector<Answer>() : m_shared.client->ask(questions, limit));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Answer& answer = answers[i];
    if (answer.code == Code::no_node) {  // it has just gone
      return look(lock, what, limit);
    }
    if (!answer.is_ok()) {
      return error_of(answer.code, m_shared.client->where());
    }
    asked[i]->order = answer.stat.czxid;
    asked[i]->is_lock = answer.stat.ephemeral_owner != 0 && is_contender(m_format, node_of(asked[i]->name));
  }
  return view;
}

bool NativeNodes::tell_when_gone(const LockName& lock, const std::string& contender, std::int64_t, const News& news,
                                 const CallLimits& limit)
{
  const std::string node = m_lock == lock.text() ? node_of(contender) : std::string();
  bool is_told = false;
  for (WatchingSource* const source : node.empty() ? std::vector<WatchingSource*>() : m_shared.sources) {
    is_told = source->tell_when_gone(path_of(lock.text()) + "/" + node, {.channel = news.channel, .text = news.text},
                                     limit) ||
              is_told;
  }
  return is_told;
}

// Everybody may use it, as with the clients of these formats by default. kazoo makes its directory once, so that it must not vanish.
Result<Done> NativeNodes::make_directory(const std::string& path, const CallLimits& limit)
{
  const auto mode = m_format.clients == NativeFormat::kazoo ? CreateMode::persistent : CreateMode::container;
  std::vector<Operation> creations;
  for (auto slash = path.find('/', m_chroot.size() + 1);; slash = path.find('/', slash + 1)) {
    creations.push_back(create(path.substr(0, slash), {}, mode, false));
    if (slash == std::string::npos) {
      break;
    }
  }
  ASSIGN_OR_RETURN(const auto answers, m_shared.client->ask(creations, limit));
  for (const Answer& each : answers) {
    if (!each.is_ok() && each.code != Code::node_exists) {
      return error_of(each.code, m_shared.client->where());
    }
  }
  return Done{};
}

// Of a new contender, by the nodes of the last look. kazoo's line does not have the nodes of Curator.
Result<Done> NativeNodes::check_exclusion(std::string_view lock) const
{
  const bool is_shared = m_format.has_readers;
  const LineFormat excluded(NativeFormat::curator, !is_shared);
  const auto other =
      std::ranges::find_if(m_nodes, [&](const std::string& node) { return is_contender(excluded, node); });
  if (other == m_nodes.end()) {
    return Done{};
  }
  return Error{
      ErrorCode::config,
      "the lock " + printable(lock) + " cannot exclude " + printable(*other) +
          (is_shared ? ", a node of Curator's InterProcessMutex (leave out -s and -x, or give one of the locks "
                       "another name)"
                     : ", a node of Curator's InterProcessReadWriteLock (take it with -s or -x, or give one of "
                       "the locks another name)")};
}

Result<std::vector<Operation>> NativeNodes::change(std::string_view lock, const LineChange& change,
                                                   const CallLimits& limit)
{
  std::vector<Operation> parts;
  const std::string path = path_of(lock);
  if (change.needed) {
    const std::string node =
        node_of(change.needed->name);  // empty: no node has the name alone, so the commit is a Conflict
    parts.push_back(check(path + "/" + (node.empty() ? change.needed->name : node), any_version));
  }
  if (!change.leaves.empty() || (change.stand && m_lock != lock)) {
    RETURN_IF_ERROR(read_line(lock, limit));
  }
  for (const std::string& node : change.leaves.empty() ? std::vector<std::string>() : m_nodes) {
    if (std::ranges::find(change.leaves, contender_in(m_format, node)) != change.leaves.end()) {
      parts.push_back(remove(std::string(path).append("/").append(node), any_version));
    }
  }
  if (change.stand) {
    RETURN_IF_ERROR(check_exclusion(lock));
    RETURN_IF_ERROR(m_has_directory ? Result(Done{}) : make_directory(path, limit));
    parts.push_back(create((path + "/" + change.stand->name).append(mark_of(m_format, change.stand->reads)),
                           data_of_contender, CreateMode::ephemeral_sequential, false));
  }
  return parts;
}

}  // namespace rlock::zookeeper
