// SPDX-License-Identifier: Apache-2.0
// What must hold for rlock beside the native clients of a line, whoever they are. Each scenario has a lock of its own.
#pragma once

#include "support/native_line.h"

#include <filesystem>
#include <functional>
#include <string>

namespace rlock::test {

// A native client that has the lock until end(), and has noted that.
struct NativeHolder {
  static std::filesystem::path go() { return home_dir() / "go"; }
  static Words job() { return shell(noting("native") + "; " + until_exists(go())); }
  explicit NativeHolder(Process client) : process(std::move(client)) { await_order("native\n"); }
  void end()
  {
    create(go());
    CHECK_MESSAGE(process.wait(native_start) == success, process.err());
  }
  Process process;
};

Words noting_around(const std::filesystem::path& go, const std::string& word);
void holder_stands(const NativeLine& line, const std::string& mark);
void native_waits(const NativeLine& line);
void rlock_waits(const NativeLine& line);
void rlock_shares(const NativeLine& line);
void killed_native(const NativeLine& line);
void ended_runner(const NativeLine& line, void (*end)(const Process& runner));
void killed_runner(const NativeLine& line);
// By what `loses` does to its contender. In etcd a renewal finds that, in 5 s.
void lost_contender(const NativeLine& line, const std::function<void(const std::string&)>& loses);
void deleted_contender(const NativeLine& line);
// `start`: how an rlock is started in an own shell.
void nested_run(const NativeLine& line, const Words& nested, const Words& others);

}  // namespace rlock::test
