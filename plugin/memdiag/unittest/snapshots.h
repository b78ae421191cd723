/* Tests of snapshots share this. */

#ifndef MEMDIAG_TEST_SNAPSHOTS_H
#define MEMDIAG_TEST_SNAPSHOTS_H

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pools/pool.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"

namespace memdiag {

constexpr Details all_details =
    detail_of<Bin_row> | detail_of<Large_row> | detail_of<Extents_row>;

/** Ends a failure that a test asked for, however the test ends. */
class Failing_reads {
 public:
  explicit Failing_reads(Ctl ctl) {
    memdiag::fault::arm(memdiag::fault::Point::control,
                        static_cast<uint32_t>(ctl));
  }
  ~Failing_reads() { memdiag::fault::disarm(); }
};

/** Another thread, which purges a pool and refreshes jemalloc's statistics when
it is told to. */
class Refreshing_thread {
 public:
  explicit Refreshing_thread(Pool pool)
      : m_thread([this, pool] {
          for (unsigned done = 0;;) {
            m_wanted.wait(done);
            done = m_wanted;
            if (m_stop) return;
            (void)purging::purge(pool);
            EXPECT_EQ(0, mallctl::refresh());
          }
        }) {}
  ~Refreshing_thread() {
    m_stop = true;
    refresh_once();
    m_thread.join();
  }

  void refresh_once() {
    ++m_wanted;
    m_wanted.notify_one();
  }

 private:
  std::atomic<bool> m_stop{false};
  std::atomic<unsigned> m_wanted{0};
  std::thread m_thread;  // the last one: it uses the others
};

}  // namespace memdiag

#endif  // MEMDIAG_TEST_SNAPSHOTS_H
