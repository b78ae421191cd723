/* An address of a site means a module that was there when the site was made. */

#include "plugin/memdiag/profile/modules.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {
namespace {

Module module_of(const char *path, uint64_t begin, uint32_t first,
                 uint32_t last = module_is_there) {
  return {path, "", begin, begin + 0x1000, begin, 0, first, last};
}

Site site_of(uint32_t look, std::vector<uint64_t> addresses) {
  Site site{};
  site.look = look;
  site.addresses = std::move(addresses);
  return site;
}

/** The names of all addresses of a site among these modules. */
std::vector<std::string> names(std::vector<Module> modules, Site site) {
  separate_modules(&modules, [&site](const auto &visit) { visit(&site); });
  const Symbols symbols(modules, site.addresses);
  std::vector<std::string> found;
  for (const uint64_t address : site.addresses)
    found.push_back(symbols[address].name);
  return found;
}
using Names = std::vector<std::string>;

const std::vector<Module> modules{module_of("/program", 0x10000, 1),
                                  module_of("/innocent", 0x20000, 9),
                                  module_of("/guilty", 0x20000, 3, 7)};

TEST(Modules, AnUnloadedModulesAddressesAreItsOwn) {
  EXPECT_EQ((Names{"guilty+0xf", "program+0xfff"}),
            names(modules, site_of(3, {0x20010, 0x11000})));
  EXPECT_EQ(Names{"guilty+0x0"}, names(modules, site_of(7, {0x20001})));
  EXPECT_EQ(Names{"innocent+0xf"}, names(modules, site_of(9, {0x20010})));
  EXPECT_EQ(Names{"innocent+0xf"}, names(modules, site_of(90, {0x20010})));
}

TEST(Modules, WithoutAModuleOfThatTimeThereIsNoName) {
  for (const uint32_t look : {2, 8}) {
    const Names found = names(modules, site_of(look, {0x20010, 0x10010}));
    EXPECT_EQ(0u, found[0].find("0x")) << found[0];
    EXPECT_EQ("program+0xf", found[1]);
  }
  // Outside all modules an address stays as it is.
  EXPECT_EQ(Names{"0x500f"}, names(modules, site_of(5, {0x5010})));
}

TEST(Modules, TheFirstMayBeUnloadedAsAnyOther) {
  const std::vector<Module> turned(modules.rbegin(), modules.rend());
  EXPECT_EQ((Names{"guilty+0xf", "program+0xfff"}),
            names(turned, site_of(3, {0x20010, 0x11000})));
}

TEST(Modules, WithoutLooksNothingChanges) {
  std::vector<Module> plain{{"/a", "", 0x10000, 0x11000, 0x10000}};
  Site site = site_of(0, {0x10010, 0x50});
  const std::vector<uint64_t> before = site.addresses;
  separate_modules(&plain, [&site](const auto &visit) { visit(&site); });
  EXPECT_EQ(before, site.addresses);
  EXPECT_EQ(0x10000u, plain[0].begin);
}

TEST(Modules, ThoseOfThisProcessWereThereAtALook) {
  const std::vector<Module> now = modules_of_this_process();
  ASSERT_LT(1u, now.size());
  for (const Module &module : now) {
    EXPECT_NE(0u, module.first_look) << module.path;
    EXPECT_NE(module_is_there, module.first_look) << module.path;
    EXPECT_EQ(module_is_there, module.last_look) << module.path;
  }
  EXPECT_EQ(now.size(), modules_of_this_process().size());
}

TEST(Modules, OneThatIsClosedStaysWithItsEnd) {
  // A part of the C library that nothing here needs.
  const char name[] = "libthread_db.so.1";
  const auto found = [&name] {
    std::vector<Module> all = modules_of_this_process();
    std::erase_if(all,
                  [&](const Module &one) { return !one.path.ends_with(name); });
    return all;
  };
  void *const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(nullptr, library);
  const std::vector<Module> open = found();
  ASSERT_EQ(1u, open.size());
  EXPECT_EQ(module_is_there, open[0].last_look);
  ASSERT_EQ(0, dlclose(library));
  for (int time = 0; time < 2; ++time) {
    const std::vector<Module> closed = found();
    ASSERT_EQ(1u, closed.size());
    EXPECT_EQ(open[0].first_look, closed[0].first_look);
    EXPECT_NE(module_is_there, closed[0].last_look);
  }
  const uint32_t end = found()[0].last_look;
  uint32_t last_opened = 0;
  for (size_t closed = 2; closed < kept_modules + 3; ++closed) {
    void *const again = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(nullptr, again);
    last_opened = found()[0].first_look;
    EXPECT_EQ(0, dlclose(again));
    EXPECT_EQ(std::min(closed, kept_modules), found().size());
  }
  EXPECT_LT(end, found()[0].last_look);
  EXPECT_EQ(last_opened, found()[0].first_look) << "the newest stays";
  // The oldest is the one that was forgotten.
  for (const Module &module : found())
    EXPECT_NE(open[0].first_look, module.first_look);
}

TEST(Modules, AReaderHoldsNeitherTheLinkerNorOthersInMalloc) {
  EXPECT_TRUE(memdiag_test::others_go_on(
      [] { (void)modules_of_this_process(); },
      [] {
        (void)dl_iterate_phdr([](dl_phdr_info *, size_t, void *) { return 1; },
                              nullptr);
      }));
  EXPECT_TRUE(
      memdiag_test::others_go_on([] { (void)modules_of_this_process(); },
                                 [] { (void)modules_of_this_process(); }));
}

}  // namespace
}  // namespace memdiag::profile
