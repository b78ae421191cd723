#include "plugin/memdiag/ceiling/giving.h"

#include <algorithm>
#include <utility>

namespace memdiag::ceiling {
namespace {

constexpr int64_t mb = 1 << 20;
/** After a search without a frame: dirty pages are written meanwhile. */
constexpr uint64_t no_frames_pause_us = 20'000;
/** A statement of an unknown digest begins so long after the last one while the
reserve is left beyond what running ones are expected to take. Otherwise it
begins after the longer time. */
constexpr uint64_t unknown_pause_us = 250'000;
constexpr uint64_t long_unknown_pause_us = 2'000'000;
constexpr uint64_t small_wait_us = 200'000;
constexpr uint64_t small_unknown_pause_us = 50'000;
constexpr uint64_t most_idle_ms = 8;
constexpr uint64_t floor_pause_us = 1'000'000;
/** So the giver spends a thousandth of its time on that, also where a server
never fills the floor. */
constexpr uint64_t floor_pauses = 1000;

bool is_over(std::optional<uint64_t> since_us, uint64_t pause_us,
             uint64_t now_us) {
  return !since_us || now_us - *since_us >= pause_us;
}

int64_t credit_of(const Situation &situation) {
  return (situation.left_bytes - situation.marks.plenty_bytes) / 2;
}

/** The free frames that InnoDB lacks of its credit. 0: it lacks a quarter at
most, which is not worth a step. */
int64_t lack_of_credit(const Situation &situation) {
  const int64_t credit = credit_of(situation);
  const int64_t lacks = credit - static_cast<int64_t>(situation.free_bytes);
  return lacks > credit / 4 ? lacks : 0;
}

}  // namespace

Next Giving::next_credit(const Situation &situation) {
  const int64_t credit = credit_of(situation);
  const auto free = static_cast<int64_t>(situation.free_bytes);
  // All frames come back when the pool is resized.
  m_lent_bytes =
      std::min(m_lent_bytes, static_cast<int64_t>(situation.parked_bytes));
  if (free > credit + credit / 4 && situation.parkable_bytes != 0)
    return {Step::park,
            std::min({static_cast<uint64_t>(free - credit),
                      most_of_credit_at_once, situation.parkable_bytes}),
            true};
  const int64_t bytes = std::min(lack_of_credit(situation), m_lent_bytes);
  if (bytes > 0)
    return {Step::give_back_frames, static_cast<uint64_t>(bytes), true};
  return {Step::none, 0};
}

Next Giving::next_return(const Situation &situation, uint64_t now_us) {
  const int64_t spare = situation.left_bytes - 2 * situation.marks.plenty_bytes;
  if (spare <= 0) {
    m_calm_since_us.reset();
    return {Step::none, 0};
  }
  if (!m_calm_since_us) m_calm_since_us = now_us;
  // More than its credit would be parked again.
  const int64_t bytes =
      std::min({spare / 8, lack_of_credit(situation),
                static_cast<int64_t>(situation.parked_bytes) - m_lent_bytes});
  if (bytes <= 0 || now_us - *m_calm_since_us < calm_before_return_us ||
      !is_over(m_returned_us, return_pause_us, now_us))
    return {Step::none, 0};
  m_returned_us = now_us;
  return {Step::give_back_frames, static_cast<uint64_t>(bytes)};
}

bool Giving::must_end(const Situation &situation, uint64_t now_us) const {
  if (situation.level != Level::red || !m_red_since_us) return false;
  // Frames above the floor become clean: InnoDB writes them.
  if (situation.stuck && situation.parkable_bytes == 0)
    return is_over(m_ended_us, stuck_pause_us, now_us);
  const bool falls = situation.left_bytes <
                     m_left_when_ended - situation.marks.reserve_bytes / 8;
  if (!is_over(m_ended_us, falls ? stuck_pause_us : end_pause_us, now_us))
    return false;
  return situation.left_bytes < situation.marks.reserve_bytes / 4 ||
         now_us - *m_red_since_us >= hope_us;
}

bool Giving::all_kept(const Situation &situation, uint64_t now_us) const {
  return situation.stuck && m_red_since_us &&
         (situation.left_bytes < 0 || now_us - *m_red_since_us >= hope_us);
}

Next Giving::next(const Situation &situation, uint64_t now_us) {
  m_spills = m_spills && situation.level != Level::green &&
             situation.level != Level::unknown;
  if (situation.level != Level::red)
    m_red_since_us.reset();
  else if (!m_red_since_us)
    m_red_since_us = now_us;
  if (situation.level == Level::unknown) {
    m_calm_since_us.reset();
    return {Step::none, 0};
  }
  if (situation.missing_bytes != 0)
    return {Step::give_back_missing, situation.missing_bytes};
  const int64_t plenty = situation.marks.plenty_bytes;
  const int64_t missing =
      plenty + plenty / 4 + situation.asked_bytes - situation.left_bytes;
  if (missing <= 0) {
    const Next credit = next_credit(situation);
    return credit.step != Step::none ? credit : next_return(situation, now_us);
  }
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
  m_spills = true;
  if (situation.caches && is_over(m_caches_us, m_caches_pause_us, now_us)) {
    m_caches_us = now_us;
    return {Step::shrink_caches, static_cast<uint64_t>(missing)};
  }
  if (must_end(situation, now_us)) {
    m_left_when_ended = situation.left_bytes;
    return {Step::end_statement, static_cast<uint64_t>(missing)};
  }
  return {Step::none, 0};
}

void Giving::note_parked(const Next &next, uint64_t parked_bytes,
                         uint64_t now_us) {
  if (next.of_credit)
    m_lent_bytes += static_cast<int64_t>(parked_bytes);
  else if (parked_bytes < next.bytes)
    m_no_frames_us = now_us;
  else
    m_no_frames_us.reset();
}

void Giving::note_given_back(const Next &next, uint64_t given_bytes) {
  if (next.of_credit) m_lent_bytes -= static_cast<int64_t>(given_bytes);
}

bool Choice::may_be_chosen(const Candidate &candidate) const {
  const int64_t least =
      m_all_kept && candidate.keeps ? least_ending_bytes : worth_ending_bytes;
  return candidate.may_end && !candidate.ends &&
         candidate.grown_bytes >= least &&
         (m_all_end_late || !candidate.ends_late);
}

void Choice::see_first(const Candidate &candidate) {
  if (!may_be_chosen(candidate)) return;
  if (!candidate.ends_late && std::exchange(m_all_end_late, false))
    m_most_bytes = 0;
  m_most_bytes = std::max(m_most_bytes, candidate.grown_bytes);
}

bool Choice::see_again(const Candidate &candidate) {
  if (!may_be_chosen(candidate) || candidate.grown_bytes < m_most_bytes / 2 ||
      candidate.number < m_last)
    return false;
  m_last = candidate.number;
  return true;
}

size_t Peaks::place_to_give(uint64_t hash) {
  const auto kb = [this](size_t i) {
    return m_words[i].load(std::memory_order_relaxed) & kb_mask;
  };
  const size_t first = first_place(hash);
  const size_t by_hash = first + (hash >> 40) % places;
  if (kb(by_hash) <= small_bytes >> 10 ||
      m_spared.fetch_add(1, std::memory_order_relaxed) % most_spared ==
          most_spared - 1)
    return by_hash;
  size_t least = by_hash;
  for (size_t i = first; i < first + places; ++i)
    if (kb(i) < kb(least)) least = i;
  return least;
}

void Peaks::set(uint64_t hash, int64_t bytes) {
  const auto kb = static_cast<uint32_t>(
      std::clamp<int64_t>(bytes >> 10, 0, kb_mask - 1) + 1);
  const size_t first = first_place(hash);
  size_t chosen = first + places;
  for (size_t i = first; i < first + places; ++i) {
    const uint32_t word = m_words[i].load(std::memory_order_relaxed);
    if (word == 0) chosen = i;
    if (!is_of(word, hash)) continue;
    chosen = i;
    break;
  }
  if (chosen == first + places) chosen = place_to_give(hash);
  // Small statements come by the thousand, and change nothing.
  if (m_words[chosen].load(std::memory_order_relaxed) != (tag(hash) | kb))
    m_words[chosen].store(tag(hash) | kb, std::memory_order_relaxed);
}

void Peaks::note(uint64_t hash, int64_t peak_bytes, bool has_spilled) {
  if (hash == 0) return;
  // A small one had nothing to spill, unless its digest is large otherwise.
  if (has_spilled &&
      std::max(peak_bytes, this->peak_bytes(hash).value_or(0)) >= small_bytes)
    hash = spilled(hash);
  const std::optional<int64_t> before = this->peak_bytes(hash);
  set(hash, before ? (3 * *before + peak_bytes) / 4 : peak_bytes);
}

int64_t expected_of_beginner(bool has_digest, std::optional<int64_t> peak_bytes,
                             int64_t average_peak_bytes, int64_t plenty_bytes) {
  int64_t expected = plenty_bytes;
  if (!has_digest)
    expected = std::min(average_peak_bytes / 4, 16 * mb);
  else if (peak_bytes)
    expected = std::min(*peak_bytes, 4 * plenty_bytes);
  return expected < small_bytes ? 0 : expected;
}

bool Pace::may_begin(const Beginner &beginner, uint64_t now_us) {
  const bool fits = beginner.left_for_beginners_bytes >= beginner.reserve_bytes;
  if (beginner.waited_us < patient_us ||
      beginner.left_bytes < beginner.reserve_bytes ||
      !is_over(m_began_us, fits ? unknown_pause_us : long_unknown_pause_us,
               now_us))
    return false;
  m_began_us = now_us;
  return true;
}

bool Small_pace::may_begin(const Beginner &beginner, uint64_t now_us) {
  const Room_to_keep room{beginner.left_bytes, beginner.reserve_bytes,
                          beginner.beyond_bytes, beginner.running_bytes};
  const uint64_t began_us = now_us - beginner.waited_us;
  if (beginner.may_keep && room.is_beyond())
    return !room.is_used_up() && beginner.known &&
           (beginner.holds || beginner.waited_us >= small_wait_us) &&
           m_beyond.may_go_on(began_us, now_us);
  if (beginner.holds) return true;
  const bool short_of_room = beginner.left_bytes < beginner.reserve_bytes / 4;
  if (short_of_room && beginner.waited_us < small_wait_us) return false;
  if (!beginner.known &&
      (beginner.waited_us == 0 ||
       !is_over(m_unknown_us, small_unknown_pause_us, now_us)))
    return false;
  if (short_of_room && beginner.may_keep &&
      !m_keeping.may_go_on(began_us, now_us))
    return false;
  if (!beginner.known) m_unknown_us = now_us;
  return true;
}

uint64_t Rest::next_ms(bool gave, uint64_t look_ms) {
  m_idle_ms = gave ? 1 : std::min(2 * m_idle_ms, most_idle_ms);
  return std::max(look_ms, m_idle_ms);
}

int64_t missing_of_floor(uint64_t floor_bytes, Reading present_bytes,
                         int64_t plenty_bytes) {
  const uint64_t present = present_bytes.value_or(floor_bytes);
  return std::min(
      static_cast<int64_t>(floor_bytes - std::min(floor_bytes, present)),
      plenty_bytes);
}

bool Floor::is_due(uint64_t floor_bytes, uint64_t parked_bytes,
                   uint64_t now_us) const {
  return now_us >= m_next_us &&
         (m_promised_bytes != 0 || floor_bytes != m_floor_bytes ||
          parked_bytes != m_parked_bytes);
}

int64_t Floor::see(uint64_t floor_bytes, uint64_t parked_bytes,
                   Reading present_bytes, int64_t plenty_bytes, uint64_t now_us,
                   uint64_t took_us) {
  m_next_us = now_us + std::max(floor_pause_us, took_us * floor_pauses);
  m_floor_bytes = floor_bytes;
  m_parked_bytes = parked_bytes;
  const int64_t now =
      missing_of_floor(floor_bytes, present_bytes, plenty_bytes);
  return now - std::exchange(m_promised_bytes, now);
}

int64_t Floor::forget() {
  const int64_t promised = m_promised_bytes;
  *this = {};
  return promised;
}

Reading needed_at_rest(int64_t kept_bytes,
                       std::initializer_list<Reading> can_go) {
  Reading rest = static_cast<uint64_t>(std::max<int64_t>(kept_bytes, 0));
  for (const Reading &part : can_go) rest = difference(rest, part);
  return rest;
}

Reading frames_give(uint64_t frames_bytes, Reading present_bytes,
                    uint64_t staying_bytes) {
  if (frames_bytes == 0) return 0;
  if (!present_bytes) return std::nullopt;
  // Pages that stay may be swapped out.
  return std::min(frames_bytes,
                  *present_bytes - std::min(*present_bytes, staying_bytes));
}

int64_t next_average(int64_t average_bytes, int64_t peak_bytes) {
  return (average_bytes * 15 + std::max<int64_t>(peak_bytes, 0)) / 16;
}

}  // namespace memdiag::ceiling
