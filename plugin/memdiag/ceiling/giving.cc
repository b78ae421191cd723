#include "plugin/memdiag/ceiling/giving.h"

#include <algorithm>

namespace memdiag::ceiling {
namespace {

constexpr int64_t mb = 1 << 20;
/** After a search without a frame: dirty pages are written meanwhile. */
constexpr uint64_t no_frames_pause_us = 20'000;

bool is_over(std::optional<uint64_t> since_us, uint64_t pause_us,
             uint64_t now_us) {
  return !since_us || now_us - *since_us >= pause_us;
}

}  // namespace

Next Giving::next_return(const Situation &situation, uint64_t now_us) {
  const int64_t spare = situation.left_bytes - 2 * situation.marks.plenty_bytes;
  if (spare <= 0) {
    m_calm_since_us.reset();
    return {Step::none, 0};
  }
  if (!m_calm_since_us) m_calm_since_us = now_us;
  if (situation.parked_bytes == 0 ||
      now_us - *m_calm_since_us < calm_before_return_us ||
      !is_over(m_returned_us, return_pause_us, now_us))
    return {Step::none, 0};
  m_returned_us = now_us;
  return {Step::give_back_frames, static_cast<uint64_t>(spare) / 8};
}

Next Giving::next(const Situation &situation, uint64_t now_us) {
  if (situation.level == Level::unknown) {
    m_calm_since_us.reset();
    return {Step::none, 0};
  }
  const int64_t plenty = situation.marks.plenty_bytes;
  const int64_t missing = plenty + plenty / 4 - situation.left_bytes;
  if (missing <= 0) return next_return(situation, now_us);
  m_calm_since_us.reset();
  if (situation.unused_bytes >= worth_purging_bytes &&
      is_over(m_purged_us, purge_pause_us, now_us)) {
    m_purged_us = now_us;
    return {Step::purge, static_cast<uint64_t>(missing)};
  }
  const bool has_frames = situation.parkable_bytes != 0 &&
                          is_over(m_no_frames_us, no_frames_pause_us, now_us);
  if (has_frames)
    return {Step::park,
            std::min({static_cast<uint64_t>(missing), most_parked_at_once,
                      situation.parkable_bytes})};
  // More than the plenty is left: it is not worth a cache.
  if (situation.level == Level::green) return {Step::none, 0};
  if (situation.caches && is_over(m_caches_us, caches_pause_us, now_us)) {
    m_caches_us = now_us;
    return {Step::shrink_caches, static_cast<uint64_t>(missing)};
  }
  if (situation.level == Level::red &&
      is_over(m_ended_us, end_pause_us, now_us))
    return {Step::end_statement, static_cast<uint64_t>(missing)};
  return {Step::none, 0};
}

void Giving::note_parked(uint64_t asked_bytes, uint64_t parked_bytes,
                         uint64_t now_us) {
  if (parked_bytes < asked_bytes)
    m_no_frames_us = now_us;
  else
    m_no_frames_us.reset();
}

bool ends_rather(const Candidate &candidate, const Candidate *most) {
  return candidate.may_end && !candidate.ends &&
         candidate.grown_bytes >= worth_ending_bytes &&
         (most == nullptr || candidate.grown_bytes > most->grown_bytes);
}

bool Small_digests::is_small(uint64_t hash) const {
  return hash != 0 &&
         m_small[hash % m_small.size()].load(std::memory_order_relaxed);
}

void Small_digests::note(uint64_t hash, int64_t peak_bytes) {
  if (hash == 0) return;
  const bool small = peak_bytes < small_bytes;
  std::atomic<bool> &mark = m_small[hash % m_small.size()];
  if (mark.load(std::memory_order_relaxed) != small)
    mark.store(small, std::memory_order_relaxed);
}

int64_t promise_of_beginner(int64_t average_peak_bytes) {
  return std::clamp(average_peak_bytes / 4, mb, 16 * mb);
}

int64_t next_average(int64_t average_bytes, int64_t peak_bytes) {
  return (average_bytes * 15 + std::max<int64_t>(peak_bytes, 0)) / 16;
}

}  // namespace memdiag::ceiling
