#include "plugin/memdiag/pressure/pressure_response.h"

#include <cerrno>
#include <cstdio>
#include <utility>

namespace memdiag {
namespace {

using purge_log::Action;
using relief::Event;
using relief::Step;

std::string text_of(const pressure::Figures &figures, bool statements_wait) {
  std::string text = "memory pressure (";
  if (figures.used_bytes && figures.limit_bytes)
    text += std::to_string(*figures.used_bytes) + " of " +
            std::to_string(*figures.limit_bytes) + " bytes are used";
  if (figures.stall_percent) {
    char percent[64];
    (void)snprintf(percent, sizeof percent,
                   "%stasks waited for %.1f%% of the last second",
                   text.ends_with('(') ? "" : "; ", *figures.stall_percent);
    text += percent;
  }
  if (statements_wait)
    text += std::string(text.ends_with('(') ? "" : "; ") +
            "statements wait for memory";
  return text + ")";
}

}  // namespace

void Pressure_response::tick(const Settings &settings) {
  if (m_settings && *m_settings != settings) relief::end_pause(&m_state);
  m_settings = settings;
  const uint64_t now_us = m_clock(CLOCK_MONOTONIC);
  const pressure::Figures figures =
      m_gauge.read(now_us, settings.thresholds.limit_percent);
  if (!m_introduced) introduce();
  m_statements_wait = m_server->statements_wait();
  const bool was_in_round = m_state.in_round;
  const Event event =
      relief::next_event(settings.thresholds, figures, kept_bytes(), now_us,
                         &m_state, m_statements_wait);
  if (m_state.in_round && !was_in_round) m_purged = {};
  switch (event) {
    case Event::none:
      return;
    case Event::ended:
      report_end();
      return;
    case Event::due:
      break;
  }
  if (m_mode == Mode::act)
    act(figures, now_us);
  else
    report(figures, now_us);
}

void Pressure_response::introduce() {
  m_introduced = true;
  const auto name = [](const std::string &file) {
    return file.empty() ? "nowhere" : file;
  };
  m_server->note("memory pressure is watched: use in " +
                 name(m_gauge.usage_file()) + ", stalls in " +
                 name(m_gauge.stall_file()));
}

/** The part of the last round's purges that was not allocated again. */
uint64_t Pressure_response::kept_bytes() const {
  std::array<uint64_t, pool_count> allocated_bytes;
  for (size_t i = 0; i < pool_count; ++i)
    allocated_bytes[i] = pools::allocated_bytes(static_cast<Pool>(i));
  return relief::kept_bytes(m_purged, allocated_bytes);
}

void Pressure_response::act(const pressure::Figures &figures, uint64_t now_us) {
  const Step step = relief::next_step(m_server->stock(), now_us, &m_state);
  if (step.kind != Step::none) m_gauge.forget_stalls();
  switch (step.kind) {
    case Step::none:
      // The end of a round is a line only if the round found nothing to do.
      if (!m_reported)
        m_server->note(line(figures, "nothing is worth giving back"));
      break;
    case Step::purge:
      m_server->note(line(figures, purge(step.pool)));
      break;
    case Step::write_full_text_caches:
      m_server->note(
          line(figures, logged(step.pool, Action::write_full_text, [this] {
                 return m_server->write_full_text_caches();
               })));
      break;
    case Step::close_unused_tables:
      m_server->note(line(
          figures, logged(step.pool, Action::close_tables,
                          [this] { return m_server->close_unused_tables(); })));
      break;
    case Step::shrink_buffer_pool:
      // The user's setting has changed, and nothing changes it back.
      m_server->warn(line(
          figures, logged(step.pool, Action::shrink_buffer_pool, [this, &step] {
            return m_server->shrink_buffer_pool(step.bytes);
          })));
      break;
  }
}

/** Reports the steps that act() would take in a round. */
void Pressure_response::report(const pressure::Figures &figures,
                               uint64_t now_us) {
  relief::Stock stock = m_server->stock();
  std::string text;
  for (;;) {
    const Step step = relief::next_step(stock, now_us, &m_state);
    if (step.kind == Step::none) break;
    struct Words {
      const char *verb;
      const char *amount;
    };
    constexpr Words words[] = {
        {},
        {"purge pool ", " bytes unused)"},
        {"have full-text caches written, pool ", " bytes live)"},
        {"close unused tables, pool ", " bytes live)"},
        {"make the buffer pool smaller, pool ", " bytes less)"}};
    const auto [verb, amount] = words[step.kind];
    text += (text.empty() ? "would " : ", ") + std::string(verb) +
            spec_of(step.pool).name + " (" + std::to_string(step.bytes) +
            amount;
    if (step.kind == Step::purge)
      stock.dirty_bytes[static_cast<size_t>(step.pool)] = 0;
  }
  relief::rest_long(&m_state);
  m_server->warn(
      line(figures, text.empty() ? "nothing is worth giving back" : text));
}

std::string Pressure_response::purge(Pool pool) {
  const purging::Receipt receipt = m_server->purge(pool);
  relief::Purged &purged = m_purged[static_cast<size_t>(pool)];
  purged.given_back_bytes += receipt.given_back_bytes();
  purged.allocated_bytes = pools::allocated_bytes(pool);
  m_released_bytes += receipt.released_bytes();
  return std::string("purged pool ") + spec_of(pool).name + ", " +
         std::to_string(receipt.released_bytes()) + " bytes given back in " +
         std::to_string(receipt.duration_us) + " us";
}

/** Takes a step and notes it in the purge log. */
template <typename Step>
std::string Pressure_response::logged(Pool pool, Action action, Step step) {
  const uint64_t began_us = m_clock(CLOCK_MONOTONIC);
  Server_memory::Done done = step();
  purge_log::Purge entry{};
  entry.time_us = m_clock(CLOCK_REALTIME);
  entry.pool = pool;
  entry.reason = Purge_reason::pressure;
  entry.action = action;
  entry.receipt.duration_us = m_clock(CLOCK_MONOTONIC) - began_us;
  entry.receipt.error = done.freed_bytes ? 0 : EBUSY;
  entry.freed_bytes = done.freed_bytes;
  purge_log::add(entry);
  return std::move(done.text);
}

std::string Pressure_response::line(const pressure::Figures &figures,
                                    const std::string &text) {
  m_reported = true;
  return text_of(figures, m_statements_wait) + ": " + text;
}

void Pressure_response::report_end() {
  if (m_reported)
    m_server->note("memory pressure has ended; " +
                   std::to_string(m_released_bytes) +
                   " bytes were given back meanwhile");
  m_reported = false;
  m_released_bytes = 0;
}

}  // namespace memdiag
