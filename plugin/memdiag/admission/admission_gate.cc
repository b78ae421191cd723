#include "plugin/memdiag/admission/admission_gate.h"

#include <algorithm>

namespace memdiag::admission {
namespace {

/** @return a sum that does not overflow */
uint64_t add(uint64_t a, uint64_t b) { return sum(a, b).value_or(UINT64_MAX); }

/** @return 0 instead of a negative difference */
uint64_t subtract(uint64_t a, uint64_t b) { return a - std::min(a, b); }

uint64_t held_by(const Statement &statement) {
  return static_cast<uint64_t>(std::max<int64_t>(
      statement.held_bytes->load(std::memory_order_relaxed), 0));
}

}  // namespace

void Gate::List::append(Statement *statement) {
  statement->next = nullptr;
  statement->previous = last;
  (last != nullptr ? last->next : first) = statement;
  last = statement;
}

void Gate::List::remove(Statement *statement) {
  Statement *const next = statement->next;
  Statement *const previous = statement->previous;
  (next != nullptr ? next->previous : last) = previous;
  (previous != nullptr ? previous->next : first) = next;
  statement->next = statement->previous = nullptr;
}

/** Bytes that it is still expected to take. */
uint64_t Gate::expected_bytes(const Statement &statement) {
  return subtract(statement.need_bytes, statement.taken_bytes);
}

uint64_t Gate::reserved_bytes() const {
  return add(m_expected_bytes, m_ended_bytes);
}

/** The room, if it is known. */
uint64_t Gate::left_bytes() const {
  return subtract(m_figures.room_bytes.value_or(0),
                  add(reserved_bytes(), m_figures.reserve_bytes));
}

void Gate::set_need(Statement *statement) const {
  const auto &[statements, peak_bytes] = statement->past;
  statement->need_bytes = peak_bytes;
  statement->unknown = false;
  if (statements >= sessions::known_statements) return;
  const uint64_t guess_bytes =
      std::clamp(left_bytes() / 4, least_guess_bytes, most_guess_bytes) /
      (statements + 1);
  statement->need_bytes = std::max(peak_bytes, guess_bytes);
  statement->unknown = peak_bytes < sessions::large_statement_bytes;
}

bool Gate::has_room(const Statement &statement) const {
  if (!m_figures.room_bytes) return true;
  if (statement.unknown && !m_unknown_ran) return true;
  return add(add(statement.need_bytes, reserved_bytes()),
             m_figures.reserve_bytes) <= *m_figures.room_bytes;
}

bool Gate::nobody_overtakes(const Statement &first, uint64_t now_us) const {
  return now_us - first.asked_us >= first.wait_us / 2 &&
         add(first.need_bytes, m_figures.reserve_bytes) <=
             add(add(m_figures.room_bytes.value_or(0), m_held_bytes),
                 m_figures.unused_bytes.value_or(0));
}

bool Gate::is_minor(const Statement &statement) const {
  return statement.need_bytes <= left_bytes() / minor_share ||
         (statement.unknown && !m_unknown_ran &&
          statement.need_bytes > left_bytes());
}

bool Gate::is_stale(uint64_t now_us) const {
  return !m_refreshed_us || now_us - *m_refreshed_us >= refresh_us;
}

bool Gate::is_pressed(uint64_t now_us) const {
  return m_waiting.first != nullptr &&
         now_us - m_waiting.first->asked_us >= pressed_us;
}

bool Gate::may_refresh(uint64_t now_us) const {
  return is_stale(now_us) ||
         (m_changed && now_us - *m_refreshed_us >= soonest_refresh_us);
}

void Gate::refresh(const Figures &figures, uint64_t now_us) {
  m_figures = figures;
  m_refreshed_us = now_us;
  m_changed = false;
  m_unknown_ran = false;
  m_ended_bytes = 0;
  m_expected_bytes = 0;
  m_held_bytes = 0;
  for (Statement *each = m_running.first; each != nullptr; each = each->next) {
    const uint64_t held_bytes = held_by(*each);
    if (held_bytes > each->need_bytes)
      each->need_bytes = add(held_bytes, held_bytes);
    each->taken_bytes = std::min(held_bytes, each->seen_bytes);
    each->seen_bytes = held_bytes;
    m_held_bytes = add(m_held_bytes, held_bytes);
    m_expected_bytes = add(m_expected_bytes, expected_bytes(*each));
  }
  bool only_minor = false;
  for (Statement *each = m_waiting.first; each != nullptr;) {
    Statement *const next = each->next;
    if (!fits(each)) {
      only_minor = only_minor || nobody_overtakes(*each, now_us);
    } else if (!only_minor || is_minor(*each)) {
      withdraw(each);
      enter(each);
      m_wake(each);
    }
    each = next;
  }
}

bool Gate::fits(Statement *statement) const {
  set_need(statement);
  return has_room(*statement);
}

bool Gate::ask(Statement *statement, uint64_t now_us) {
  const Statement *const first = m_waiting.first;
  if (fits(statement) && (first == nullptr || is_minor(*statement) ||
                          !nobody_overtakes(*first, now_us))) {
    enter(statement);
    return true;
  }
  statement->runs = false;
  m_waiting.append(statement);
  return false;
}

void Gate::enter(Statement *statement) {
  if (statement->unknown && statement->need_bytes > left_bytes())
    m_unknown_ran = true;
  statement->runs = true;
  statement->seen_bytes = statement->taken_bytes = 0;
  m_running.append(statement);
  m_expected_bytes = add(m_expected_bytes, expected_bytes(*statement));
}

Next Gate::next(const Statement &statement, uint64_t now_us) {
  if (statement.runs) return {Step::run, 0, 0};
  const uint64_t end_us = add(statement.asked_us, statement.wait_us);
  if (now_us >= end_us) return {Step::refuse, 0, 0};
  if (&statement != m_waiting.first) return {Step::wait, end_us, 0};
  if (may_refresh(now_us) || !m_figures.unused_bytes)
    return {Step::refresh, 0, 0};
  const uint64_t unused_bytes = *m_figures.unused_bytes;
  if (unused_bytes >= worth_purging_bytes) {
    const uint64_t missing_bytes =
        subtract(add(add(statement.need_bytes, reserved_bytes()),
                     m_figures.reserve_bytes),
                 m_figures.room_bytes.value_or(0));
    const bool enough = unused_bytes >= missing_bytes;
    if (!m_purged_us ||
        now_us - *m_purged_us >= (enough ? refresh_us : purge_pause_us)) {
      m_purged_us = now_us;
      return {Step::purge, 0, missing_bytes};
    }
  }
  const uint64_t refresh_at_us =
      *m_refreshed_us + (m_changed ? soonest_refresh_us : refresh_us);
  return {Step::wait, std::min(end_us, refresh_at_us), 0};
}

void Gate::outdate() { m_refreshed_us.reset(); }

void Gate::withdraw(Statement *statement) {
  const bool was_leader = statement == m_waiting.first;
  m_waiting.remove(statement);
  if (was_leader && m_waiting.first != nullptr) m_wake(m_waiting.first);
}

void Gate::leave(Statement *statement) {
  m_running.remove(statement);
  const uint64_t bytes = expected_bytes(*statement);
  m_expected_bytes = subtract(m_expected_bytes, bytes);
  m_ended_bytes = add(m_ended_bytes, bytes);
  if (m_changed) return;
  m_changed = true;
  if (m_waiting.first != nullptr) m_wake(m_waiting.first);
}

void Gate::wake_all() {
  for (Statement *each = m_waiting.first; each != nullptr; each = each->next)
    m_wake(each);
}

}  // namespace memdiag::admission
