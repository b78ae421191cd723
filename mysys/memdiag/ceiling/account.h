/*
  The account of the ceiling: the kernel's figure, what threads have taken since
  it was read, what is promised to them and may be untouched, and what their
  statements are expected to take.

  Each reading of the kernel replaces what was charged before it began. So an
  error of the account lives until the next reading.

  Ownership: none. Locks: none; one thread at a time reads the kernel, and the
  others go on with the former figure. Threads: any. Works within malloc(): it
  allocates nothing.
  Errors: if the kernel cannot be read, or there is no limit, the level is
  unknown.
  Units: bytes; microseconds of a clock that does not go back.
*/

#ifndef MEMDIAG_CEILING_ACCOUNT_H
#define MEMDIAG_CEILING_ACCOUNT_H

#include <atomic>
#include <cstdint>

#include "mysys/memdiag/ceiling/levels.h"

namespace memdiag::ceiling {

class Account {
 public:
  /** Reads what the kernel counts as kept. It allocates nothing and takes no
  mutex. @return false: it cannot be read */
  using Reader = bool (*)(int64_t *kept_bytes);

  static constexpr int64_t green_charge_bytes = 4 << 20;
  static constexpr int64_t short_charge_bytes = 1 << 20;
  static constexpr uint64_t short_pause_us = 1'000;

  /** nullptr: the level is unknown from then on. A reading that runs is waited
  for. One thread at a time. */
  void set_reader(Reader reader);
  /** @name The reader's files may be changed in between. A reading that runs is
  waited for, and none begins. @{ */
  void hold_reading();
  void let_reading_go() { m_reading.store(false, std::memory_order_release); }
  /** @} */
  void set_marks(const Marks &marks);
  Marks marks() const;

  /** @param bytes  a negative number takes back */
  void charge(int64_t bytes) {
    m_charged.fetch_add(bytes, std::memory_order_relaxed);
  }
  /** A thread allocated so much, and freed as much or more. What it freed may
  be of another pool, where its pages stay. So nothing is charged, but the
  kernel is read in time. */
  void churn(int64_t bytes) {
    m_churned.fetch_add(bytes, std::memory_order_relaxed);
  }
  void promise(int64_t bytes) {
    m_promised.fetch_add(bytes, std::memory_order_relaxed);
  }
  /** Running statements will take so much more, as far as their digests tell.
  It keeps others from beginning. Those that run do not wait for it. */
  void expect(int64_t bytes) {
    m_expected.fetch_add(bytes, std::memory_order_relaxed);
  }

  /** A thread waits for so much more, of which nothing is promised meanwhile:
  others go on. */
  void ask(int64_t bytes) {
    m_asked.fetch_add(bytes, std::memory_order_relaxed);
  }

  int64_t left_bytes() const;
  /** Far above the plenty: the giver's own readings are enough. */
  bool has_much_left() const {
    return left_bytes() / 4 >= marks().plenty_bytes;
  }
  /** Less what is expected. */
  int64_t left_for_beginners_bytes() const {
    return left_bytes() - expected_bytes();
  }
  Level level() const;
  /** So much was charged or churned since the last reading that the kernel must
  be read. */
  bool is_due(uint64_t now_us) const;
  /** Reads the kernel. @return false: another thread does, or it failed */
  bool read(uint64_t now_us);

  int64_t kept_bytes() const { return m_kept.load(std::memory_order_relaxed); }
  int64_t charged_bytes() const {
    return m_charged.load(std::memory_order_relaxed);
  }
  int64_t promised_bytes() const {
    return m_promised.load(std::memory_order_relaxed);
  }
  int64_t expected_bytes() const {
    return m_expected.load(std::memory_order_relaxed);
  }
  int64_t asked_bytes() const {
    return m_asked.load(std::memory_order_relaxed);
  }
  /** For tests: the kernel counts so much; negative: ask it. */
  void pretend_for_test(int64_t kept_bytes) { m_pretended.store(kept_bytes); }
  uint64_t readings() const {
    return m_readings.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<Reader> m_reader{nullptr};
  std::atomic<int64_t> m_pretended{-1};
  std::atomic<bool> m_known{false};
  std::atomic<bool> m_reading{false};
  std::atomic<int64_t> m_target{0};
  std::atomic<int64_t> m_plenty{0};
  std::atomic<int64_t> m_reserve{0};
  std::atomic<int64_t> m_beyond{0};
  std::atomic<int64_t> m_ending{0};
  std::atomic<int64_t> m_kept{0};
  std::atomic<uint64_t> m_read_us{0};
  std::atomic<uint64_t> m_readings{0};
  /** Written by each thread after 64 KB. */
  alignas(64) std::atomic<int64_t> m_charged{0};
  std::atomic<int64_t> m_churned{0};
  std::atomic<int64_t> m_promised{0};
  std::atomic<int64_t> m_expected{0};
  std::atomic<int64_t> m_asked{0};
};

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_ACCOUNT_H
