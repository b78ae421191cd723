/* Policies: lists, values in force, and what the purger makes of them. */

#include "mysys/memdiag/purging/policies.h"

#include "mysys/memdiag/purging/purger.h"
#include "mysys/memdiag/unittest/test.h"

namespace memdiag_test {

using memdiag::Policy;
namespace policies = memdiag::policies;

TEST(Policies, AsDeclaredUntilTheyAreChanged) {
  for (size_t i = 0; i < memdiag::pool_count; ++i) {
    const Pool each = static_cast<Pool>(i);
    const auto &spec = memdiag::spec_of(each);
    EXPECT_EQ(spec.quiet_ms, policies::get(Policy::quiet_ms, each));
    EXPECT_EQ(spec.dirty_decay_ms, policies::get(Policy::dirty_decay_ms, each));
    EXPECT_EQ(spec.muzzy_decay_ms, policies::get(Policy::muzzy_decay_ms, each));
    EXPECT_EQ(0, policies::get(Policy::dirty_limit, each));
  }
}

FRESH_TEST(Policies, AListIsTheWholeState) {
  EXPECT_EQ("", policies::set(Policy::quiet_ms, "session=200, ddl=0"));
  EXPECT_EQ(200, policies::get(Policy::quiet_ms, Pool::session));
  EXPECT_EQ(0, policies::get(Policy::quiet_ms, Pool::ddl));
  EXPECT_EQ(500, policies::get(Policy::quiet_ms, Pool::fts_query));
  EXPECT_EQ("", policies::set(Policy::quiet_ms, "all=1000,SESSION=300"));
  EXPECT_EQ(300, policies::get(Policy::quiet_ms, Pool::session));
  EXPECT_EQ(1000, policies::get(Policy::quiet_ms, Pool::ddl));
  EXPECT_EQ("", policies::set(Policy::quiet_ms, ""));
  EXPECT_EQ(500, policies::get(Policy::quiet_ms, Pool::session));
  EXPECT_EQ("",
            policies::set(Policy::dirty_limit, "session=8M,ddl=1g,innodb=5"));
  EXPECT_EQ(8 << 20, policies::get(Policy::dirty_limit, Pool::session));
  EXPECT_EQ(1 << 30, policies::get(Policy::dirty_limit, Pool::ddl));
  EXPECT_EQ(5, policies::get(Policy::dirty_limit, Pool::innodb));
}

FRESH_TEST(Policies, AWrongListSaysWhatIsWrongAndChangesNothing) {
  EXPECT_EQ("", policies::set(Policy::quiet_ms, "session=200"));
  for (const auto &[list, message] :
       std::initializer_list<std::pair<const char *, const char *>>{
           {"session", "'session' is not of the form pool=value"},
           {"ddl=5,session=x", "'x' is not a value; it takes 0 to 3600000"},
           {"ddl=5,session=", "'' is not a value"},
           {"session=-1", "'-1' is not a value"},
           {"session=3600001", "is not a value"},
           {"session=99999999999999999999", "is not a value"},
           {"session=5M", "is not a value"},
           {"nowhere=5", "'nowhere' is not a pool"},
           {"general=5",
            "'general' is not a pool that it can be set for; say all, or name "
            "some of fts_query,"}}) {
    EXPECT_NE(std::string::npos,
              policies::set(Policy::quiet_ms, list).find(message))
        << list << ": " << policies::check(Policy::quiet_ms, list);
    EXPECT_EQ(200, policies::get(Policy::quiet_ms, Pool::session));
    EXPECT_EQ(500, policies::get(Policy::quiet_ms, Pool::ddl));
  }
  EXPECT_NE("", policies::check(Policy::dirty_limit, "ddl=9999999999G"));
  EXPECT_NE("", policies::check(Policy::dirty_limit, "ddl=1T"));
}

FRESH_TEST(Policies, DecayReachesTheArenas) {
  const auto decay_of = [](Pool each) {
    ssize_t decay = -3;
    pools::for_each_arena(each, [&](unsigned arena) {
      decay = mallctl::read<Ctl::arena_dirty_decay_ms>(arena).value();
    });
    return decay;
  };
  pools::free(Pool::session, pools::allocate(Pool::session, 100), 100);
  EXPECT_EQ(10000, decay_of(Pool::session));
  EXPECT_EQ("", policies::set(Policy::dirty_decay_ms, "all=77,general=88"));
  EXPECT_EQ(77, decay_of(Pool::session));
  EXPECT_EQ(88, mallctl::read<Ctl::arena_dirty_decay_ms>(0).value());
  // A pool that is no longer named is as declared; malloc()'s as its options
  // say.
  const auto opt = mallctl::read<Ctl::opt_dirty_decay_ms>().value();
  EXPECT_EQ("", policies::set(Policy::dirty_decay_ms, "session=99"));
  EXPECT_EQ(99, decay_of(Pool::session));
  EXPECT_EQ(opt, mallctl::read<Ctl::arena_dirty_decay_ms>(0).value());
  EXPECT_EQ(opt, mallctl::read<Ctl::arenas_dirty_decay_ms>().value());
  EXPECT_EQ("", policies::set(Policy::dirty_decay_ms, "all=77"));
  // And those to come.
  EXPECT_EQ(77, mallctl::read<Ctl::arenas_dirty_decay_ms>().value());
  pools::free(Pool::ddl, pools::allocate(Pool::ddl, 100), 100);
  EXPECT_EQ(77, decay_of(Pool::ddl));
}

FRESH_TEST(Policies, OptionsAreTakenOver) {
  policies::options[static_cast<size_t>(Policy::quiet_ms)] = "session=200";
  policies::options[static_cast<size_t>(Policy::muzzy_decay_ms)] = "";
  policies::options[static_cast<size_t>(Policy::dirty_limit)] = "ddl=7";
  EXPECT_EQ("", policies::apply_options());
  EXPECT_EQ(200, policies::get(Policy::quiet_ms, Pool::session));
  EXPECT_EQ(7, policies::get(Policy::dirty_limit, Pool::ddl));
  policies::options[static_cast<size_t>(Policy::dirty_limit)] = "ddl=x";
  EXPECT_NE(std::string::npos, policies::apply_options().find("'x' is not"));
  EXPECT_EQ(7, policies::get(Policy::dirty_limit, Pool::ddl));
}

/** Unused pages of a pool. */
void make_dirty(Pool each, size_t bytes) {
  memdiag_test::stay_on_this_cpu();
  std::vector<void *> blocks;
  for (size_t i = 0; i < bytes >> 16; ++i) {
    blocks.push_back(pools::allocate(each, 1 << 16));
    memset(blocks.back(), 1, 1 << 16);
  }
  for (void *block : blocks) pools::free(each, block, 1 << 16);
}

FRESH_TEST(Policies, ALimitOfDirtyPagesHoldsInTheMidstOfABurst) {
  EXPECT_EQ("", policies::set(Policy::dirty_decay_ms, "session=-1"));
  EXPECT_EQ("", policies::set(Policy::dirty_limit, "session=4M"));
  memdiag::purger::Watch watch;
  for (uint64_t tick = 1; tick <= 20; ++tick) {  // never quiet
    make_dirty(Pool::session, 16 << 20);
    watch.tick();
    EXPECT_EQ(tick, purging::counters(Pool::session).purges);
    EXPECT_LE(purging::dirty_bytes(Pool::session).value(), 4u << 20);
  }
  EXPECT_EQ("", policies::set(Policy::dirty_limit, ""));
  make_dirty(Pool::session, 16 << 20);
  watch.tick();
  EXPECT_EQ(20u, purging::counters(Pool::session).purges);
}

FRESH_TEST(Policies, PagesThatAreWantedAgainAreLeftLonger) {
  constexpr Pool bursty = Pool::session;
  EXPECT_EQ("", policies::set(Policy::quiet_ms, "session=100"));
  EXPECT_EQ("", policies::set(Policy::dirty_decay_ms, "session=-1"));
  memdiag::purger::Watch watch;
  const auto ticks = [&watch](unsigned count) {
    for (unsigned i = 0; i < count; ++i) watch.tick();
  };
  const auto purged_after_burst_and = [&](uint32_t quiet_ticks) {
    const uint64_t purges = purging::counters(bursty).purges;
    make_dirty(bursty, 16 << 20);
    ticks(1);
    ticks(quiet_ticks - 1);
    EXPECT_EQ(purges, purging::counters(bursty).purges);
    ticks(1);
    return purging::counters(bursty).purges == purges + 1;
  };
  // Bursts that begin as soon as the pages of the one before were given back.
  // A purge is judged just before the next one, or after a second.
  for (const uint32_t wait : {1, 1, 2, 4, 8, 16, 16}) {
    EXPECT_EQ(wait, purging::backoff(bursty));
    EXPECT_TRUE(purged_after_burst_and(wait)) << wait;
  }
  EXPECT_GE(purging::counters(bursty).refaulted_bytes, 6 * uint64_t{16} << 20);
  // Bursts with nothing for long after them: the purges were right.
  ticks(11);
  for (const uint32_t wait : {8, 4, 2, 1, 1}) {
    EXPECT_EQ(wait, purging::backoff(bursty));
    EXPECT_TRUE(purged_after_burst_and(wait)) << wait;
    ticks(11);
  }
}

}  // namespace memdiag_test
