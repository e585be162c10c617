// SPDX-License-Identifier: Apache-2.0
// A release is hardened as distributions build (contract: speed never costs hardening).
#include "support/integration.h"
#include "support/paths.h"
#include "support/skip.h"

#include <elf.h>
#include <cstring>
#include <iterator>

using namespace rlock::test;

namespace {

// What the linker and the compiler left in the program that says how it is protected.
class Program {
 public:
  explicit Program(const std::string& path)
  {
    std::ifstream file(path, std::ios::binary);
    m_bytes.assign(std::istreambuf_iterator<char>(file), {});
    REQUIRE(m_bytes.starts_with(ELFMAG));
    REQUIRE(m_bytes[EI_CLASS] == ELFCLASS64);
    m_head = at<Elf64_Ehdr>(0);
    for (std::size_t i = 0; i < m_head.e_phnum; ++i) {
      m_segments.push_back(at<Elf64_Phdr>(m_head.e_phoff + i * sizeof(Elf64_Phdr)));
    }
  }

  [[nodiscard]] bool is_position_independent() const { return m_head.e_type == ET_DYN; }

  [[nodiscard]] std::vector<Elf64_Phdr> segments(std::uint32_t type) const
  {
    std::vector<Elf64_Phdr> found;
    std::ranges::copy_if(m_segments, std::back_inserter(found),
                         [&](const Elf64_Phdr& each) { return each.p_type == type; });
    return found;
  }

  // Whether the dynamic section has a flag: every function is looked up before main, so the table of them is read-only.
  [[nodiscard]] bool binds_now() const
  {
    bool binds = false;
    for (const Elf64_Phdr& dynamic : segments(PT_DYNAMIC)) {
      for (std::size_t i = 0; i < dynamic.p_filesz / sizeof(Elf64_Dyn); ++i) {
        const auto entry = at<Elf64_Dyn>(dynamic.p_offset + i * sizeof(Elf64_Dyn));
        binds = binds || (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_BIND_NOW) != 0) ||
                (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_NOW) != 0);
      }
    }
    return binds;
  }

  // Whether the program takes a function of that name from the C library.
  [[nodiscard]] bool imports(const std::string& name) const
  {
    return m_bytes.find('\0' + name + '\0') != std::string::npos;
  }

 private:
  template <typename Part>
  [[nodiscard]] Part at(std::size_t offset) const
  {
    Part part{};
    REQUIRE(offset + sizeof part <= m_bytes.size());
    std::memcpy(&part, m_bytes.data() + offset, sizeof part);
    return part;
  }

  std::string m_bytes;
  Elf64_Ehdr m_head{};
  std::vector<Elf64_Phdr> m_segments;
};

}  // namespace

TEST_CASE("release: the program is hardened")
{
  skip_if(!RLOCK_IS_RELEASE, "only the preset release builds a hardened program");
  const Program program(RLOCK_BINARY);
  CHECK(program.is_position_independent());
  CHECK(program.binds_now());
  CHECK(program.segments(PT_GNU_RELRO).size() == 1);
  CHECK(program.imports("__stack_chk_fail"));
  CHECK(program.imports("__memcpy_chk"));
  REQUIRE(program.segments(PT_GNU_STACK).size() == 1);
  CHECK((program.segments(PT_GNU_STACK).front().p_flags & PF_X) == 0);
  for (const Elf64_Phdr& mapping : program.segments(PT_LOAD)) {
    CHECK_FALSE(((mapping.p_flags & PF_W) != 0 && (mapping.p_flags & PF_X) != 0));
    // Constants stand in another mapping than code.
    CHECK_FALSE(((mapping.p_flags & PF_X) != 0 && mapping.p_offset == 0));
  }
}
