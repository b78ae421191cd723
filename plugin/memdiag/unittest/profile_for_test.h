/*
  Profiles of functions with chosen names: a library is written whose symbol
  table has them, so that tests go the way that the server goes.
*/

#ifndef MEMDIAG_PROFILE_FOR_TEST_H
#define MEMDIAG_PROFILE_FOR_TEST_H

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/symbols.h"
#include "plugin/memdiag/unittest/elf_image.h"

namespace memdiag_test {

/** Builds a profile site by site. */
class Profile_maker {
 public:
  static constexpr uint64_t load_bias = 0x400000;

  memdiag::profile::Profile profile{1767225600000000,
                                    1767222000000000,
                                    524288,
                                    uint64_t{1} << 30,
                                    {},
                                    {},
                                    {},
                                    0};

  /** The return address in a function of that name; C++ names are mangled. */
  uint64_t address(const std::string &symbol) {
    auto [found, is_new] = m_functions.try_emplace(symbol, 0);
    if (is_new) {
      found->second = 0x1000 + 0x10 * m_image.symtab.size();
      m_image.symtab.push_back({symbol, found->second, 0x10});
    }
    return load_bias + found->second + 5;
  }

  /** @param stack  the allocation first
  @return the number of the site */
  uint32_t add_site(const std::vector<std::string> &stack,
                    const std::string &pool = "general",
                    const std::string &route = "malloc") {
    const auto number = static_cast<uint32_t>(profile.sites.size() + 1);
    std::vector<uint64_t> addresses;
    for (const std::string &symbol : stack)
      addresses.push_back(address(symbol));
    profile.sites.push_back({number, pool, route, addresses});
    return number;
  }

  void add_live(uint32_t site, double bytes, double objects = 1,
                std::optional<memdiag::profile::Digest> digest = std::nullopt,
                double bytes_variance = 0) {
    profile.entries.push_back({site,
                               digest,
                               {bytes, objects, bytes_variance, 0},
                               1,
                               profile.time_us - 60000000,
                               profile.time_us - 30000000});
  }

  /** A site with so many live bytes. */
  uint32_t add(const std::vector<std::string> &stack, double bytes,
               const std::string &pool = "general") {
    const uint32_t site = add_site(stack, pool);
    add_live(site, bytes);
    return site;
  }

  /** Writes the library and names it in the profile. */
  memdiag::profile::Symbols symbols() {
    m_tree.write("/libtest.so", m_image.bytes());
    // Its first page has no code.
    profile.modules = {{m_tree.at("/libtest.so"), "0123ab", load_bias + 0x1000,
                        load_bias + 0x10000000, load_bias}};
    return memdiag::profile::Symbols(profile,
                                     {m_tree.at("/none"), m_tree.at("/none")});
  }

 private:
  File_tree m_tree;
  Elf_image m_image;
  std::map<std::string, uint64_t> m_functions;
};

}  // namespace memdiag_test

#endif  // MEMDIAG_PROFILE_FOR_TEST_H
