// SPDX-License-Identifier: Apache-2.0
// How QuorumStore asks its servers, and how it counts what they say. Private to it.
#pragma once

#include "store/quorum/quorum_store.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace rlock {

constexpr Millis told_for = std::chrono::hours{1};  // how long a marker needs not be told the same ttl again
constexpr Millis unresponsive_grace{50};  // for who did not answer lately: enough for the request to be on its way

// What is asked about: `further` what has to be asked after what was asked before, and not instead of it.
struct Subject {
  std::string topic;
  ServerWorker::Word word = ServerWorker::Word::last;
};
inline std::string topic_of(const LockName& name, const Hold& hold) { return hold.token() + " " + name.text(); }
inline Subject further(const LockName& name, const Hold& hold)
{
  return {topic_of(name, hold), ServerWorker::Word::further};
}

// That a lock which is renewed there, or anywhere else in the quorum, has this ttl: at first, when it is longer, and now and
// then, for a marker forgets what it is not told.
inline Result<Done> tell_ttl(QuorumServer& server, Millis ttl, const Clock& clock, const CallLimits& limit)
{
  if (!server.marker || (ttl <= server.told_ttl && clock.now() < server.tell_again_at)) {
    return Done{};
  }
  const auto told = server.marker({.ttl = ttl}, limit);
  if (!told) {
    return told.error();
  }
  server.told_ttl = ttl;
  server.tell_again_at = clock.now() + told_for;
  return Done{};
}

// The same after an answer, which counts only then.
template <typename T>
Result<T> once_told(Result<T> answer, QuorumServer& server, Millis ttl, const Clock& clock, const CallLimits& limit)
{
  const auto told = answer ? tell_ttl(server, ttl, clock, limit) : Result<Done>(Done{});
  return told ? std::move(answer) : Result<T>(told.error());
}

// `means_yes` tells the values apart.
template <typename T, typename MeansYes>
Tally tally(const Answers<T>& answers, MeansYes means_yes)
{
  Tally all;
  for (const auto& answer : answers) {
    if (!answer) {
      ++all.silent;
    } else if (!*answer) {
      ++all.failed;
    } else if (means_yes(**answer)) {
      ++all.yes;
    } else {
      ++all.no;
    }
  }
  return all;
}

// When nothing more is waited for.
inline Tally final_tally(Tally all)
{
  all.failed += std::exchange(all.silent, 0);
  return all;
}

// Why there is no quorum, for people: the first reason, and how many more. The fault is one that may pass, unless those
// that do not pass are too many by themselves. Who is silent counts only where the others would have been enough.
template <typename T>
Error no_quorum(const Answers<T>& answers, std::size_t quorum)
{
  const std::size_t spare = answers.size() - quorum;
  const Tally all = tally(answers, [](const T&) { return true; });
  const Error* first = nullptr;
  const Error* first_lasting = nullptr;
  std::size_t lasting = 0;
  for (const auto& answer : answers) {
    if (!answer || *answer) {
      continue;
    }
    const Error& error = answer->error();
    first = first != nullptr ? first : &error;
    if (error.fault != ErrorCode::unreachable && error.fault != ErrorCode::unfit &&
        error.fault != ErrorCode::interrupted) {
      ++lasting;
      first_lasting = first_lasting != nullptr ? first_lasting : &error;
    }
  }
  const Error silence{ErrorCode::unreachable, "no answer in time (raise --server-timeout)"};
  const std::size_t failed = all.failed > spare ? all.failed : all.failed + all.silent;
  const Error& why = lasting > spare ? *first_lasting : first != nullptr ? *first : silence;
  return {lasting > spare ? why.fault : ErrorCode::unreachable,
          std::to_string(failed) + " of " + std::to_string(answers.size()) + " servers failed, and it takes " +
              std::to_string(quorum) + ": " + why.text +
              (failed > 1 ? ", and " + std::to_string(failed - 1) + " more" : "")};
}

// Posts the request to all. It is given its server and its limit, and goes on when nobody waits for it any more.
template <typename T, typename Request>
QuorumStore::Asked<T> QuorumStore::post_all(const Subject& subject, Instant deadline, Request request)
{
  auto round = std::make_shared<PendingReplies<Result<T>>>(size());
  std::vector<bool> lame;
  for (std::size_t i = 0; i < size(); ++i) {
    const auto task = [round, i, deadline, request](QuorumServer& server, StopToken stop) {
      Result<T> answer = request(server, CallLimits{.deadline = deadline, .stop = stop});
      const bool answered = static_cast<bool>(answer);
      round->put(i, std::move(answer));
      return answered;
    };
    lame.push_back(m_members[i]->post(subject.topic, subject.word, task));
  }
  return {std::move(round), std::move(lame)};
}

template <typename T, typename Request, typename Enough>
Answers<T> QuorumStore::consult(const Subject& subject, const CallLimits& limit, Request request, Enough enough)
{
  const auto round = post_all<T>(subject, limit.deadline, std::move(request)).round;
  round->wait(m_clock, limit, enough);
  return round->take();
}

// Waits for everybody: only for a moment for those who did not answer lately, if the others are enough.
template <typename T, typename Request, typename Enough>
Answers<T> QuorumStore::consult_all(const Subject& subject, const CallLimits& limit, Request request, Enough enough)
{
  const auto [round, lame] = post_all<T>(subject, limit.deadline, std::move(request));
  round->wait(m_clock, limit, [&lame = lame, &enough](const Answers<T>& answers) {
    bool all_answered = true;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i] && !lame[i]) {
        return false;
      }
      all_answered = all_answered && answers[i].has_value();
    }
    return all_answered || static_cast<bool>(enough(answers));
  });
  round->wait(m_clock, {.deadline = std::min(limit.deadline, m_clock.now() + unresponsive_grace), .stop = limit.stop},
              [](const Answers<T>& answers) { return all_replied(answers); });
  return round->take();
}

}  // namespace rlock
