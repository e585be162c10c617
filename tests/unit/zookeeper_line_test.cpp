// SPDX-License-Identifier: Apache-2.0
// Which nodes are the line of Curator, and which that of kazoo.
#include "stores/zookeeper/zookeeper_native_line.h"
#include "support/test.h"

using namespace rlock;
using namespace rlock::zookeeper;

namespace {

const std::string early = "_c_f0000000-0000-4000-8000-000000000000-lock-0000000002";
const std::string late = "_c_10000000-0000-4000-8000-000000000000-lock-0000000010";
const std::string early_of_kazoo = "f0000000000040008000000000000000__lock__0000000003";
const std::string late_of_kazoo = "10000000000040008000000000000000__lock__0000000011";

}  // namespace

TEST_CASE("zookeeper line: Curator counts all nodes, by the number behind lock-")
{
  using Nodes = std::vector<std::string>;
  CHECK(line_in(NativeFormat::curator, {late, early}) == Nodes{early, late});
  CHECK(line_in(NativeFormat::curator, {late, "lock-0000000005", early}) == Nodes{early, "lock-0000000005", late});
  CHECK(line_in(NativeFormat::curator, {"zzz", early}) == Nodes{early, "zzz"});
  CHECK(line_in(NativeFormat::curator, {early, "0"}) == Nodes{"0", early});  // as Curator sorts it
}

TEST_CASE("zookeeper line: kazoo counts its own nodes only, by the number at their end")
{
  using Nodes = std::vector<std::string>;
  CHECK(line_in(NativeFormat::kazoo, {late_of_kazoo, "0", early, early_of_kazoo, "x__rlock__0000000001"}) ==
        Nodes{early_of_kazoo, late_of_kazoo});
  CHECK(is_contender(NativeFormat::kazoo, "f__lock__-2147483648"));
  CHECK_FALSE(is_contender(NativeFormat::kazoo, "f__lock__12"));
}

TEST_CASE("zookeeper line: a contender goes by its node without the number")
{
  CHECK(contender_in(NativeFormat::curator, early) == "_c_f0000000-0000-4000-8000-000000000000");
  CHECK(contender_in(NativeFormat::curator, "lock-0000000005") == "lock-0000000005");
  CHECK(contender_in(NativeFormat::curator, "zzz") == "zzz");
  CHECK(contender_in(NativeFormat::kazoo, early_of_kazoo) == "f0000000000040008000000000000000");
  CHECK(contender_in(NativeFormat::kazoo, "__lock__0000000003") == "__lock__0000000003");
  CHECK(line_path("/app", "k") == "/app/k");
  CHECK(line_path("/app", "/jobs/k") == "/app/jobs/k");
  CHECK(line_path("", "k") == "/k");
}

TEST_CASE("zookeeper line: the nodes of Curator's read-write lock are known")
{
  CHECK(is_contender(zookeeper::curator_read_write, "_c_f0000000-0000-4000-8000-000000000000-__READ__0000000002"));
  CHECK(is_contender(zookeeper::curator_read_write, "_c_f0000000-0000-4000-8000-000000000000-__WRIT__0000000002"));
  CHECK_FALSE(is_contender(zookeeper::curator_read_write, "_c_f0000000-0000-4000-8000-000000000000-__WRIT__2"));
  CHECK_FALSE(is_contender(zookeeper::curator_read_write, early));
  CHECK_FALSE(is_contender(zookeeper::curator_read_write, "__READ__"));
  CHECK_FALSE(is_contender(NativeFormat::curator, "_c_f0000000-0000-4000-8000-000000000000-__READ__0000000002"));
}

TEST_CASE("zookeeper line: a read-write lock of Curator has the order of the numbers, its writer before its reader")
{
  using Nodes = std::vector<std::string>;
  const auto ordered = [](const Nodes& nodes) { return line_in(zookeeper::curator_read_write, nodes); };
  CHECK(ordered({"_c_a-__WRIT__0000000010", "_c_b-__READ__0000000002"}) ==
        Nodes{"_c_b-__READ__0000000002", "_c_a-__WRIT__0000000010"});
  CHECK(ordered({"_c_a-__READ__0000000002", "_c_b-__WRIT__0000000002"}) ==
        Nodes{"_c_b-__WRIT__0000000002", "_c_a-__READ__0000000002"});
  CHECK(ordered({early, "_c_b-__READ__0000000007", "0"}) == Nodes{"0", "_c_b-__READ__0000000007", early});
  CHECK(contender_in(zookeeper::curator_read_write, "_c_b-__READ__0000000007") == "_c_b");
  CHECK(contender_in(zookeeper::curator_read_write, "_c_b-__WRIT__0000000007") == "_c_b");
}

TEST_CASE("zookeeper line: a reader waits for the first writer in front of it, a writer for the first node")
{
  const std::vector<std::string> line{"_c_a-__READ__0000000001", "_c_b-__READ__0000000002", "_c_c-__WRIT__0000000003",
                                      "_c_d-__READ__0000000004", "_c_e-__WRIT__0000000005"};
  const auto first = [&](const std::string& own, bool reads = false) {
    return contender_in(zookeeper::curator_read_write, first_in(zookeeper::curator_read_write, line, own, reads));
  };
  CHECK(first("_c_a") == "_c_a");
  CHECK(first("_c_b") == "_c_b");
  CHECK(first("_c_c") == "_c_a");
  CHECK(first("_c_d") == "_c_c");
  CHECK(first("_c_e") == "_c_a");
  CHECK(first("", true) == "_c_c");
  CHECK(first("", false) == "_c_a");
  const std::vector<std::string> readers{line[0], line[1]};
  CHECK(first_in(zookeeper::curator_read_write, readers, "", true).empty());
  CHECK(holding_in(line) == readers);
  CHECK(holding_in({line[2], line[3]}) == std::vector<std::string>{line[2]});
  CHECK(holding_in({}).empty());
}

TEST_CASE("zookeeper line: a lock without readers belongs to the first node")
{
  const std::vector<std::string> line{early, late};
  CHECK(first_in(NativeFormat::curator, line, contender_in(NativeFormat::curator, late), true) == early);
  CHECK(first_in(NativeFormat::curator, line, contender_in(NativeFormat::curator, early), false) == early);
  CHECK(first_in(NativeFormat::curator, line, "", false) == early);
  CHECK(first_in(NativeFormat::curator, {}, "", false).empty());
}
