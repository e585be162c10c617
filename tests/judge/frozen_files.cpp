// SPDX-License-Identifier: Apache-2.0
#include "judge/frozen_files.h"

#include <chrono>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace rlock::judge {
namespace {

constexpr Millis shortest{500};  // each freeze, and each pause
constexpr Millis spread{3500};   // how much longer it may be: longer than the longest ttl of the storm
constexpr Millis time_to_thaw{60'000};

Millis some_pause(Rng& rng)
{
  return shortest + Millis(static_cast<std::int64_t>(below(rng, static_cast<std::uint64_t>(spread.count()))));
}

}  // namespace

std::unique_ptr<FrozenFiles> FrozenFiles::make(const std::filesystem::path& dir, std::string& why_not)
{
  if (::geteuid() != 0) {
    why_not = "needs root";
    return nullptr;
  }
  const std::filesystem::path directory = dir / "frozen";
  std::filesystem::create_directory(directory);
  test::Process mount({"sh", "-ec",
                       "truncate -s 32M \"$0.img\"; mkfs.ext4 -q \"$0.img\"; mount -o loop \"$0.img\" \"$0\"; "
                       "fsfreeze -f \"$0\"; fsfreeze -u \"$0\"",
                       directory});
  if (mount.wait(time_to_thaw).code != 0) {
    why_not = "no file system can be frozen here: " + mount.err();
    ::umount2(directory.c_str(), MNT_DETACH);
    return nullptr;
  }
  return std::unique_ptr<FrozenFiles>(new FrozenFiles(directory));
}

FrozenFiles::~FrozenFiles()
{
  end();
  ::umount2(m_directory.c_str(), MNT_DETACH);
}

void FrozenFiles::go_on(Instant now, Rng& rng)
{
  if (m_freeze && !m_freeze->process.running()) {
    end();
    m_next = now + some_pause(rng);
  }
  if (!m_freeze && now >= m_next) {
    const double seconds = std::chrono::duration<double>(some_pause(rng)).count();
    m_freeze = Freeze{now, test::Process({"sh", "-c", "fsfreeze -f \"$0\"; sleep \"$1\"; fsfreeze -u \"$0\"",
                                          m_directory, std::to_string(seconds)},
                                         {.new_session = true})};
  }
}

void FrozenFiles::end()
{
  if (m_freeze) {
    m_freeze->process.wait(time_to_thaw);
    m_freezes.push_back({m_freeze->from, m_clock.now()});
    m_freeze.reset();
  }
}

std::vector<Stall> FrozenFiles::freezes() const
{
  std::vector<Stall> all = m_freezes;
  if (m_freeze) {
    all.push_back({m_freeze->from, m_clock.now()});
  }
  return all;
}

bool mount_for_oneself()
{
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace rlock::judge
