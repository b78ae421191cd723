/*
  Stacks as text: the readable column, and folded stacks.
*/

#include "plugin/memdiag/profile/folded.h"

#include <gtest/gtest.h>

#include <string>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile_export/pprof.h"
#include "plugin/memdiag/unittest/profile_for_test.h"

namespace memdiag::profile {
namespace {

using memdiag_test::Profile_maker;

TEST(Frames_text, KindsOfFrames) {
  for (const char *name :
       {"malloc", "je_arena_palloc", "prof_backtrace_impl", "operator new",
        "operator new[]", "memdiag_allocate", "memdiag::pools::allocate",
        "__libc_malloc", "__libc_calloc"})
    EXPECT_EQ(Frame_kind::allocator, kind_of_frame(name)) << name;
  for (const char *name :
       {"my_malloc", "MEM_ROOT::AllocSlow", "mem_heap_create_block",
        "ut::detail::malloc", "std::vector::push_back", "start_thread",
        "std::__cxx11::basic_string::_M_create"})
    EXPECT_EQ(Frame_kind::helper, kind_of_frame(name)) << name;
  for (const char *name :
       {"THD::THD", "malloc_unordered", "my_malloc_service", "mem_heap",
        "xmalloc", "mysqld+0x1234", "memdiag::black_box::Box::open",
        "stdout_write", "?", "", "A::operator new", "dict_table_t::lock"})
    EXPECT_EQ(Frame_kind::code, kind_of_frame(name)) << name;
}

TEST(Frames_text, TheReadableFormBeginsWithCode) {
  Profile_maker maker;
  maker.add_site({"malloc", "_Znwm", "my_malloc", "_ZN8MEM_ROOT9AllocSlowEm",
                  "inner", "mem_heap_alloc", "middle", "outer", "main",
                  "_start"});
  const Symbols symbols = maker.symbols();
  const auto &stack = maker.profile.sites[0].addresses;
  EXPECT_EQ("inner < middle < outer < main", readable_frames(stack, symbols));
  EXPECT_EQ("inner < middle", readable_frames(stack, symbols, 2));
  EXPECT_EQ(
      "_start;main;outer;middle;mem_heap_alloc;inner;"
      "MEM_ROOT::AllocSlow;my_malloc",
      folded_stack(stack, symbols));
  EXPECT_EQ(8u, without_allocator(stack, symbols).size());
}

TEST(Frames_text, AFunctionThatCallsItselfIsNamedOnce) {
  Profile_maker maker;
  maker.add_site({"f", "f", "my_malloc", "f", "g", "f"});
  const Symbols symbols = maker.symbols();
  EXPECT_EQ("f < g < f",
            readable_frames(maker.profile.sites[0].addresses, symbols));
  EXPECT_EQ("f;g;f;my_malloc;f;f",
            folded_stack(maker.profile.sites[0].addresses, symbols));
}

TEST(Frames_text, ALongNameLeavesRoomForOthers) {
  const std::string name = "_ZN4bulk6loader" + std::string(1100, 'I') + "Ev";
  Profile_maker maker;
  maker.add_site({name.c_str(), "f"});
  const Symbols symbols = maker.symbols();
  const auto &stack = maker.profile.sites[0].addresses;
  EXPECT_EQ(name.substr(0, 96) + "... < f", readable_frames(stack, symbols));
  EXPECT_EQ("f;" + name, folded_stack(stack, symbols));
}

TEST(Frames_text, WithoutCodeTheRestIsShown) {
  Profile_maker maker;
  maker.add_site({"malloc", "my_malloc", "start_thread"});
  maker.add_site({"je_a", "malloc"});
  maker.add_site({});
  const Symbols symbols = maker.symbols();
  const auto &sites = maker.profile.sites;
  EXPECT_EQ("my_malloc < start_thread",
            readable_frames(sites[0].addresses, symbols));
  EXPECT_EQ("je_a < malloc", readable_frames(sites[1].addresses, symbols));
  EXPECT_EQ("malloc;je_a", folded_stack(sites[1].addresses, symbols));
  EXPECT_EQ("", readable_frames(sites[2].addresses, symbols));
  EXPECT_EQ("?", folded_stack(sites[2].addresses, symbols));
}

TEST(Frames_text, TheProfilerIsNeverTheOneThatAllocates) {
  // The caller's code was not known to the stack walk.
  Profile_maker maker;
  maker.add({"_ZN7memdiag9profiling9on_sampleEv",
             "je_prof_malloc_sample_object", "je_malloc_default"},
            10);
  maker.add({"_ZN7memdiag9profiling9on_sampleEv"}, 20);
  const Symbols symbols = maker.symbols();
  const auto &sites = maker.profile.sites;
  EXPECT_EQ("je_malloc_default", readable_frames(sites[0].addresses, symbols));
  EXPECT_EQ("je_malloc_default", folded_stack(sites[0].addresses, symbols));
  EXPECT_EQ("", readable_frames(sites[1].addresses, symbols));
  EXPECT_EQ("?", folded_stack(sites[1].addresses, symbols));
  EXPECT_EQ(std::string::npos, pprof(maker.profile, symbols).find("on_sample"));
}

TEST(Frames_text, AllocatorsFramesInTheMiddleStay) {
  // Code that malloc() calls back, as a hook of jemalloc's.
  Profile_maker maker;
  maker.add_site({"malloc", "hook", "je_b", "malloc", "f"});
  const Symbols symbols = maker.symbols();
  EXPECT_EQ("f;malloc;je_b;hook",
            folded_stack(maker.profile.sites[0].addresses, symbols));
  EXPECT_EQ("hook < f",
            readable_frames(maker.profile.sites[0].addresses, symbols));
}

TEST(Frames_text, UnknownFramesOfTheAllocator) {
  Profile_maker maker;
  const uint64_t unknown = Profile_maker::load_bias + 0xfffff1;
  maker.add_site({"je_a", "malloc", "f"});
  maker.add_site({"f"});
  auto &sites = maker.profile.sites;
  sites[0].addresses.insert(sites[0].addresses.begin() + 1, unknown);
  sites[0].addresses.insert(sites[0].addresses.begin(), unknown);
  sites[1].addresses.insert(sites[1].addresses.begin(), unknown);
  const Symbols symbols = maker.symbols();
  EXPECT_EQ("f", folded_stack(sites[0].addresses, symbols));
  EXPECT_EQ("f;libtest.so+0xfffff0", folded_stack(sites[1].addresses, symbols));
  EXPECT_EQ("libtest.so+0xfffff0 < f",
            readable_frames(sites[1].addresses, symbols));
}

TEST(Frames_text, NamesThatWouldBreakTheForm) {
  EXPECT_EQ("a:b c??", folded_name("a;b c\n\t"));
  EXPECT_EQ("\xc3\xa9?", folded_name("\xc3\xa9\x7f"));
}

TEST(Folded, ALineForEachStack) {
  Profile_maker maker;
  maker.add({"malloc", "b", "a"}, 1000.6);
  const uint32_t site = maker.add({"c", "a"}, 10);
  maker.add_live(site, 20, 1, Digest{1});
  // The same functions, through another route.
  maker.add({"my_b", "b", "a"}, 1, "session");
  maker.add({"b", "a"}, 5, "session");
  maker.add({"zero"}, 0.4);
  EXPECT_EQ("a;b 1006\na;b;my_b 1\na;c 30\n",
            folded(maker.profile, maker.symbols()));
  EXPECT_EQ(
      "general;a;b 1001\ngeneral;a;c 30\nsession;a;b 5\n"
      "session;a;b;my_b 1\n",
      folded(maker.profile, maker.symbols(), First_frame::pool));
}

TEST(Folded, ByStatement) {
  Profile_maker maker;
  const uint32_t site = maker.add({"a"}, 10);
  maker.add_live(site, 20, 1, Digest{0x1f, 0xa0});
  maker.add_live(site, 30, 1, Digest{0x1f, 0xa0});
  EXPECT_EQ("1fa0" + std::string(60, '0') + ";a 50\nno statement;a 10\n",
            folded(maker.profile, maker.symbols(), First_frame::digest));
}

TEST(Folded, UnknownPoolsAndSites) {
  Profile_maker maker;
  maker.add({"a"}, 1, "");
  maker.add_live(77, 1000);
  EXPECT_EQ("unknown;a 1\n",
            folded(maker.profile, maker.symbols(), First_frame::pool));
  EXPECT_EQ("", folded(Profile{}, Symbols()));
}

/** A killed statement throws the text away: none is made any more. */
TEST(Stacks, AKilledStatementMakesNone) {
  Profile_maker maker;
  maker.add_live(maker.add_site({"malloc", "inner"}), 1000);
  maker.add_live(maker.add_site({"malloc", "other"}), 2000);
  const Symbols symbols;
  const std::string whole = pprof(maker.profile, symbols);
  for (const First_frame first :
       {First_frame::function, First_frame::pool, First_frame::digest})
    EXPECT_FALSE(folded_stacks(maker.profile, symbols, first).empty());

  const Interruptible killed([](const void *) { return true; }, nullptr);
  for (const First_frame first :
       {First_frame::function, First_frame::pool, First_frame::digest})
    EXPECT_TRUE(folded_stacks(maker.profile, symbols, first).empty());
  EXPECT_LT(pprof(maker.profile, symbols).size(), whole.size());
}

}  // namespace
}  // namespace memdiag::profile
