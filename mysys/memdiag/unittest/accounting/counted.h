/*
  The tests of thread_bytes, digests and intervals share this: counting that is
  on for a test, and what the tables then have.
*/

#ifndef MEMDIAG_COUNTED_H
#define MEMDIAG_COUNTED_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "mysys/memdiag/accounting/digests.h"
#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/accounting/tracking.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/scope_hooks.h"

namespace memdiag_test {

namespace sessions = memdiag::sessions;
using sessions::Digest;
using sessions::Holdings;
using sessions::Nets;

constexpr pools::Account account = 7;
constexpr size_t of_session = static_cast<size_t>(Pool::session);
constexpr size_t of_statement = static_cast<size_t>(Pool::statement);

/** A size class, so that what is counted is known. */
constexpr int64_t block_size = 65536;

inline void *take(Pool from, size_t size = block_size) {
  return pools::allocate(from, size, false, account);
}
inline void give_back(Pool to, void *block, size_t size = block_size) {
  pools::free(to, block, size, account);
}

inline Digest digest_of(uint64_t number) {
  Digest digest{};
  memcpy(digest.data() + 3, &number, sizeof number);
  digest[0] = 1;
  return digest;
}
inline void end_statement(Digest digest) {
  memdiag::statement_ended(false, digest.data());
}

inline std::optional<sessions::Digest_row> row_of(const Digest &digest) {
  for (const sessions::Digest_row &row : sessions::digests())
    if (row.digest == sessions::text_of(digest)) return row;
  return std::nullopt;
}

/** Bytes that a thread holds; empty if it is not there. */
inline Nets nets_of(pthread_t thread) {
  for (const sessions::Thread_nets &each : sessions::holdings().threads)
    if (pthread_equal(each.thread, thread)) return each.nets;
  return {};
}

inline int64_t sum(const Holdings &holdings, size_t of_pool) {
  int64_t total = holdings.gone[of_pool];
  for (const sessions::Thread_nets &each : holdings.threads)
    total += each.nets[of_pool];
  return total;
}

/** Lets threads wait for each other. */
class Turns {
 public:
  void wait_for(int turn) {
    for (int now = m_turn; now < turn; now = m_turn) m_turn.wait(now);
  }
  void next() {
    ++m_turn;
    m_turn.notify_all();
  }

 private:
  std::atomic<int> m_turn{0};
};

class Sessions : public testing::Test {
 protected:
  void SetUp() override { sessions::track(true); }
  void TearDown() override { sessions::track(false); }
};

}  // namespace memdiag_test

#endif  // MEMDIAG_COUNTED_H
