/* Policies: lists, values in force, and what the purger makes of them. */

#include "mysys/memdiag/purging/policies.h"

#include <thread>

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
           {"general=5", "'general' is not a pool that it can be set for"}}) {
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
  // What is no longer named is as declared, and malloc()'s as its options say.
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
  ASSERT_EQ(0, memdiag::purger::start());
  const uint64_t purges = pools::counters(Pool::session).purges;
  for (int i = 0; i < 40; ++i) {  // never quiet for long
    make_dirty(Pool::session, 16 << 20);
    sleep_ms(50);
  }
  EXPECT_GT(pools::counters(Pool::session).purges, purges + 3);
  memdiag::purger::stop();
}

FRESH_TEST(Policies, PagesThatAreWantedAgainAreLeftLonger) {
  EXPECT_EQ("", policies::set(Policy::quiet_ms, "session=100"));
  EXPECT_EQ("", policies::set(Policy::dirty_decay_ms, "session=-1"));
  ASSERT_EQ(0, memdiag::purger::start());
  EXPECT_EQ(1u, pools::backoff(Pool::session));
  // Bursts with pauses just long enough for a purge.
  for (int i = 0; i < 30 && pools::backoff(Pool::session) == 1; ++i) {
    make_dirty(Pool::session, 16 << 20);
    sleep_ms(400);
  }
  EXPECT_GT(pools::backoff(Pool::session), 1u);
  EXPECT_GT(pools::counters(Pool::session).refaulted_bytes, 0u);
  // One burst, and nothing for long: the purge was right.
  for (int i = 0; i < 20 && pools::backoff(Pool::session) > 1; ++i) {
    make_dirty(Pool::session, 16 << 20);
    sleep_ms(3500);
  }
  EXPECT_EQ(1u, pools::backoff(Pool::session));
  memdiag::purger::stop();
}

}  // namespace memdiag_test
