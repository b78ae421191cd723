/* Readers of everything at once, while pools are created, used and purged,
threads come and go, and what runs in the background is started and stopped: as
at a shutdown with monitors connected. Worth most under the thread sanitizer. */

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/accounting/tracking.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/purging/purger.h"
#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/unittest/test.h"
#include "plugin/memdiag/advice/advisor.h"
#include "plugin/memdiag/advice/situation.h"
#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/ledger/ledger_reader.h"
#include "plugin/memdiag/ledger/session_rows.h"
#include "plugin/memdiag/unittest/snapshots.h"

namespace memdiag {
namespace {

/** Allocates from all pools, and frees in other threads than it took. */
void use_pools(unsigned seed, int rounds) {
  std::minstd_rand random(seed);
  sessions::session_began();
  for (int i = 0; i < rounds; ++i) {
    const auto pool = static_cast<Pool>(random() % pool_count);
    const size_t size = 1 + random() % 100000;
    const auto account = static_cast<pools::Account>(1 + random() % 20);
    void *const block = pools::allocate(pool, size, false, account);
    ASSERT_NE(nullptr, block);
    memset(block, 1, std::min<size_t>(size, 100));
    if (random() % 10 == 0)
      std::thread([=] { pools::free(pool, block, size, account); }).join();
    else
      pools::free(pool, block, size, account);
  }
  unsigned char digest[32];
  memset(digest, static_cast<int>(seed), sizeof digest);
  sessions::statement_ended(digest);
  sessions::session_ended();
}

/** A thread that does the same again and again, until this is destroyed. */
class Repeated {
 public:
  /** @param body  called with the number of the round, from 0 */
  explicit Repeated(std::function<void(unsigned)> body)
      : m_thread([this, body = std::move(body)] {
          while (!m_stop) {
            body(m_rounds);
            ++m_rounds;
            m_rounds.notify_all();
          }
        }) {}
  ~Repeated() {
    m_stop = true;
    m_thread.join();
  }
  Repeated(const Repeated &) = delete;
  Repeated &operator=(const Repeated &) = delete;

  /** Waits until so many more rounds have ended. */
  void wait_for_rounds(unsigned count) const {
    unsigned now = m_rounds;
    for (const unsigned enough = now + count; now < enough; now = m_rounds)
      m_rounds.wait(now);
  }

 private:
  std::atomic<bool> m_stop{false};
  std::atomic<unsigned> m_rounds{0};
  std::thread m_thread;
};

TEST(Readers, OfEverythingWhileAllOfItChanges) {
  char name[] = "/tmp/memdiag_readers.XXXXXX";
  const std::string folder = mkdtemp(name);
  history::interval_ms = 10;
  history::capacity = 100;
  {
    const Repeated reads_figures([](unsigned i) {
      const Snapshot snapshot = take_snapshot(i % 4 == 0 ? all_details : 0);
      EXPECT_EQ(pool_count, snapshot.pools.size());
      (void)advisor::findings(
          advisor::make_situation(snapshot, host::collect().figures, {},
                                  history::this_run(), scopes::survivors()));
      // A sanitizer's own memory takes minutes to look at.
      if (memdiag_test::sanitized) return;
      for (const auto precision :
           {ledger::Precision::cheap, ledger::Precision::exact})
        EXPECT_FALSE(ledger::reader()
                         .take(snapshot, std::nullopt, precision)
                         .rows.empty());
    });
    const Repeated reads_lists([](unsigned) {
      EXPECT_FALSE(routes::all().empty());
      (void)sessions::rows(sessions::holdings(), {});
      (void)sessions::digests();
      (void)purge_log::all();
      (void)history::this_run();
      (void)history::former_runs();
      int error;
      (void)regions::all(&error);
      EXPECT_EQ(0, error);
    });
    const auto use = [](unsigned seed) {
      std::thread([seed] { use_pools(seed, 50); }).join();
    };
    const Repeated uses([use](unsigned i) { use(i + 1); });
    const Repeated uses_too([use](unsigned i) { use(i + 2); });
    const Repeated purges([&uses](unsigned i) {
      EXPECT_EQ(0, purging::purge(static_cast<Pool>(i % pool_count)).error);
      uses.wait_for_rounds(1);
    });
    purger::Watch watch;
    const Repeated ticks([&watch, &uses](unsigned) {
      watch.tick();
      uses.wait_for_rounds(1);
    });
    const Repeated switches([&uses](unsigned i) {
      sessions::track(i % 2 == 0);
      uses.wait_for_rounds(5);
    });
    // A server that starts and shuts down, again and again
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(0, purger::start());
      const auto started =
          history::start(folder + "/" + history::file_name, 90704, 0);
      EXPECT_EQ(0, started.thread_error);
      EXPECT_EQ(0, started.file_error);
      reads_figures.wait_for_rounds(1);
      reads_lists.wait_for_rounds(1);
      history::stop();
      purger::stop();
    }
  }
  sessions::track(false);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace memdiag
