/* Scope survivors: what is left when a statement, transaction or session ends.
 */

#include <algorithm>
#include <array>
#include <thread>

#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/unittest/stopped_in_malloc.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/scope_hooks.h"

namespace memdiag_test {

using memdiag::Packed_tag;
using memdiag::Scope;
namespace routes = memdiag::routes;
namespace scopes = memdiag::scopes;

void statement_ended(bool in_transaction) {
  unsigned char no_digest[32]{};
  memdiag::statement_ended(in_transaction, no_digest);
}

/** A route of our own to a pool, counted from none. */
class Survivors : public testing::Test {
 protected:
  void SetUp() override { scopes::track(true); }
  void TearDown() override { scopes::track(false); }

  static Packed_tag tag_of(const char *name) {
    return memdiag::tag_of_key(memdiag_note_instrument("scopes", name, 0), 1);
  }
  static std::optional<scopes::Row> row(const std::string &name) {
    for (const scopes::Row &each : scopes::survivors())
      if (each.route == "memory/scopes/" + name) return each;
    return std::nullopt;
  }
};

TEST(Scopes, OnlyPoolsWithAScopeHaveOne) {
  EXPECT_EQ(Scope::statement, memdiag::scope_of(Pool::fts_query));
  EXPECT_EQ(Scope::session, memdiag::scope_of(Pool::session));
  EXPECT_EQ(Scope::transaction, memdiag::scope_of(Pool::transaction));
  EXPECT_FALSE(memdiag::scope_of(Pool::table_cache).has_value());
  EXPECT_FALSE(memdiag::scope_of(Pool::general).has_value());
}

class Routed_survivors : public Survivors {
 protected:
  /** Routes of the test to pools of each lifetime. */
  static void route() {
    routes::options.routes =
        "memory/scopes/statement=statement,memory/scopes/session=session,"
        "memory/scopes/transaction=transaction,memory/scopes/cache=table_cache";
    ASSERT_EQ("", routes::apply_options());
  }
  void SetUp() override {
    route();
    statement = tag_of("statement");
    transaction = tag_of("transaction");
    session = tag_of("session");
    cache = tag_of("cache");
    Survivors::SetUp();
  }
  Packed_tag statement;
  Packed_tag transaction;
  Packed_tag session;
  Packed_tag cache;
};

TEST_F(Routed_survivors, AReaderHoldsNobodyInMalloc) {
  std::array<void *, 100> blocks;
  std::array<Packed_tag, 100> tags;
  for (size_t i = 0; i < blocks.size(); ++i) {
    tags[i] = tag_of(("statement of a number: " + std::to_string(i)).c_str());
    blocks[i] = routes::allocate(tags[i], 100);
  }
  statement_ended(false);
  EXPECT_TRUE(others_go_on([] { EXPECT_LE(100u, scopes::survivors().size()); },
                           [this] {
                             void *const block =
                                 routes::allocate(statement, 100);
                             statement_ended(false);
                             routes::free(statement, block, 100);
                             statement_ended(false);
                           }));
  for (size_t i = 0; i < blocks.size(); ++i)
    routes::free(tags[i], blocks[i], 100);
}

TEST_F(Routed_survivors, NothingIsLeftOfWhatIsFreed) {
  void *block = routes::allocate(statement, 1000);
  routes::free(statement, block, 1000);
  statement_ended(false);
  EXPECT_FALSE(row("statement").has_value());
}

TEST_F(Routed_survivors, AStatementLeavesBlocks) {
  const Test_clock clock;
  void *first = routes::allocate(statement, 1000);
  void *second = routes::allocate(statement, 100000);
  const uint64_t start_us = clock.now();
  statement_ended(true);
  clock.advance_ms(1500);
  auto left = row("statement");
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(2u, left->blocks);
  EXPECT_EQ(1u, left->scopes);
  EXPECT_GE(left->bytes, 101000u);
  EXPECT_LE(left->bytes, 140000u);
  EXPECT_STREQ("statement", left->pool_name);
  EXPECT_STREQ("statement", left->scope_name);
  EXPECT_EQ(start_us, left->since_us);
  EXPECT_EQ(start_us, left->last_us);
  EXPECT_DOUBLE_EQ(1.5, left->age_s);

  // A statement that leaves nothing changes nothing; one that does is counted.
  statement_ended(true);
  void *third = routes::allocate(statement, 10);
  clock.advance_ms(1000);
  statement_ended(true);
  left = row("statement");
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(3u, left->blocks);
  EXPECT_EQ(2u, left->scopes);
  EXPECT_EQ(start_us, left->since_us);
  EXPECT_EQ(start_us + 2'500'000, left->last_us);
  EXPECT_DOUBLE_EQ(2.5, left->age_s);

  routes::free(statement, first, 1000);
  routes::free(statement, second, 100000);
  statement_ended(true);
  EXPECT_EQ(1u, row("statement")->blocks);
  routes::free(statement, third, 10);
  statement_ended(true);
  EXPECT_FALSE(row("statement").has_value());
}

/** The clock of the wall was set back by an hour. */
uint64_t clock_that_was_set_us(clockid_t clock) {
  return memdiag::system_clock_us(clock) -
         (clock == CLOCK_REALTIME ? 3'600'000'000u : 0);
}

TEST_F(Routed_survivors, AreAsOldAsTheyAreWhereTheClockWasSet) {
  void *const block = routes::allocate(statement, 1000);
  statement_ended(false);
  memdiag::set_clock_for_test(clock_that_was_set_us);
  const uint64_t now_us = memdiag::clock_us(CLOCK_REALTIME);
  const auto left = row("statement");
  memdiag::set_clock_for_test(nullptr);
  routes::free(statement, block, 1000);
  statement_ended(false);
  ASSERT_TRUE(left.has_value());
  EXPECT_LT(0.0, left->age_s);
  EXPECT_GT(600.0, left->age_s);
  EXPECT_LT(left->since_us, now_us + 1'000'000);
  EXPECT_GT(left->last_us, now_us - 600'000'000);
}

TEST_F(Routed_survivors, EachLifetimeHasItsEnd) {
  void *of_transaction = routes::allocate(transaction, 500);
  void *of_session = routes::allocate(session, 500);
  void *of_cache = routes::allocate(cache, 500);
  statement_ended(true);
  EXPECT_TRUE(scopes::survivors().empty());
  statement_ended(false);
  EXPECT_TRUE(row("transaction").has_value());
  EXPECT_FALSE(row("session").has_value());
  memdiag::session_ended();
  EXPECT_TRUE(row("session").has_value());
  EXPECT_FALSE(row("cache").has_value());
  routes::free(transaction, of_transaction, 500);
  routes::free(session, of_session, 500);
  routes::free(cache, of_cache, 500);
  memdiag::session_ended();
  EXPECT_TRUE(scopes::survivors().empty());
}

TEST_F(Routed_survivors, AnotherSessionMayFreeThem) {
  void *block = routes::allocate(session, 300);
  memdiag::session_ended();
  EXPECT_TRUE(row("session").has_value());
  std::thread([&] {
    routes::free(session, block, 300);
    memdiag::session_ended();
  }).join();
  EXPECT_FALSE(row("session").has_value());
}

TEST_F(Routed_survivors, NeverMoreThanLives) {
  void *block = routes::allocate(session, 300);
  memdiag::session_ended();
  // A thread that ends no scope.
  std::thread([&] { routes::free(session, block, 300); }).join();
  EXPECT_FALSE(row("session").has_value());
}

TEST_F(Routed_survivors, WhatCameBeforeTheTrackingIsNoSurvivor) {
  scopes::track(false);
  void *before = routes::allocate(statement, 300);
  statement_ended(false);
  scopes::track(true);
  void *after = routes::allocate(statement, 300);
  statement_ended(false);
  ASSERT_TRUE(row("statement").has_value());
  EXPECT_EQ(1u, row("statement")->blocks);
  scopes::track(true);
  EXPECT_FALSE(row("statement").has_value());
  routes::free(statement, before, 300);
  routes::free(statement, after, 300);
  statement_ended(false);
  EXPECT_FALSE(row("statement").has_value());
}

TEST_F(Routed_survivors, OfManyThreads) {
  constexpr int threads_count = 8;
  std::vector<std::thread> threads;
  std::vector<void *> left(threads_count);
  for (int t = 0; t < threads_count; ++t)
    threads.emplace_back([&, t] {
      for (int n = 0; n < 200; ++n) {
        void *block = routes::allocate(statement, 64 + t);
        routes::free(statement, block, 64 + t);
        statement_ended(n % 2 == 0);
      }
      left[t] = routes::allocate(statement, 2000);
      memdiag::session_ended();
    });
  for (int n = 0; n < 50; ++n) (void)scopes::survivors();
  for (std::thread &thread : threads) thread.join();
  ASSERT_TRUE(row("statement").has_value());
  EXPECT_EQ(8u, row("statement")->blocks);
  EXPECT_EQ(8u, row("statement")->scopes);
  for (void *block : left) routes::free(statement, block, 2000);
  memdiag::session_ended();
  EXPECT_FALSE(row("statement").has_value());
}

}  // namespace memdiag_test
