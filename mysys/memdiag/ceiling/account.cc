#include "mysys/memdiag/ceiling/account.h"

#include "mysys/memdiag/base/clock.h"

namespace memdiag::ceiling {

void Account::set_reader(Reader reader) {
  if (reader == m_reader.load()) return;
  // A reading that runs would make the level known again.
  hold_reading();
  m_reader.store(reader);
  m_known.store(false);
  let_reading_go();
}

void Account::hold_reading() {
  while (m_reading.exchange(true, std::memory_order_acquire)) pause_us(10);
}

void Account::set_marks(const Marks &marks) {
  m_target.store(marks.target_bytes, std::memory_order_relaxed);
  m_plenty.store(marks.plenty_bytes, std::memory_order_relaxed);
  m_reserve.store(marks.reserve_bytes, std::memory_order_relaxed);
  m_beyond.store(marks.beyond_bytes, std::memory_order_relaxed);
  m_ending.store(marks.ending_bytes, std::memory_order_relaxed);
}

Marks Account::marks() const {
  return {m_target.load(std::memory_order_relaxed),
          m_plenty.load(std::memory_order_relaxed),
          m_reserve.load(std::memory_order_relaxed),
          m_beyond.load(std::memory_order_relaxed),
          m_ending.load(std::memory_order_relaxed)};
}

int64_t Account::left_bytes() const {
  return m_target.load(std::memory_order_relaxed) - kept_bytes() -
         charged_bytes() - promised_bytes();
}

Level Account::level() const {
  return m_known.load(std::memory_order_relaxed)
             ? level_of(left_bytes(), marks())
             : Level::unknown;
}

bool Account::is_due(uint64_t now_us) const {
  const int64_t charged =
      charged_bytes() + m_churned.load(std::memory_order_relaxed);
  if (charged > green_charge_bytes) return true;
  return charged > short_charge_bytes && level() > Level::green &&
         now_us >= m_read_us.load(std::memory_order_relaxed) + short_pause_us;
}

bool Account::read(uint64_t now_us) {
  if (m_reader.load() == nullptr ||
      m_reading.exchange(true, std::memory_order_acquire))
    return false;
  const Reader reader = m_reader.load();
  if (reader == nullptr) {
    let_reading_go();
    return false;
  }
  // Bytes that are charged from now on may be missing in the kernel's figure.
  const int64_t charged = charged_bytes();
  int64_t kept = m_pretended.load();
  const bool known = kept >= 0 || reader(&kept);
  if (known) {
    m_kept.store(kept, std::memory_order_relaxed);
    charge(-charged);
    m_churned.store(0, std::memory_order_relaxed);
  }
  m_known.store(known);
  m_read_us.store(now_us, std::memory_order_relaxed);
  m_readings.fetch_add(1, std::memory_order_relaxed);
  let_reading_go();
  return known;
}

}  // namespace memdiag::ceiling
