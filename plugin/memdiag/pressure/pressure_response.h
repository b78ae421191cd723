/*
  The response to memory pressure. tick() checks whether memory is short
  (host/pressure.h) and decides the next step (relief.h). Then it takes the
  step, or only reports it.

  The server's part is behind an interface, so that tests drive tick() with
  files, a clock and a server of their own. Each step other than a purge is
  noted in the purge log (MEMDIAG_PURGES); purging::purge() notes its own.

  Ownership: a Pressure_response refers to its server, which must outlive it.
  Threads: an object belongs to one thread.
  Errors: a figure that cannot be read causes nothing. Throws std::bad_alloc
  only; the caller may go on with the next tick.
*/

#ifndef MEMDIAG_PRESSURE_RESPONSE_H
#define MEMDIAG_PRESSURE_RESPONSE_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/purging/purge_log.h"
#include "mysys/memdiag/purging/receipt.h"
#include "plugin/memdiag/host/pressure.h"
#include "plugin/memdiag/pressure/relief.h"

namespace memdiag {

/** The server, as far as the response needs it. */
class Server_memory {
 public:
  /** The outcome of a step. */
  struct Done {
    /** Empty: nothing could be done. */
    std::optional<uint64_t> freed_bytes;
    /** For the error log. */
    std::string text;
  };

  virtual ~Server_memory() = default;

  /** Statements have waited for memory for long. */
  virtual bool statements_wait() = 0;

  virtual relief::Stock stock() = 0;
  virtual purging::Receipt purge(Pool pool) = 0;
  virtual Done write_full_text_caches() = 0;
  virtual Done close_unused_tables() = 0;
  virtual Done shrink_buffer_pool(uint64_t bytes) = 0;

  /** Lines of the error log. Warnings are shown by default. */
  virtual void note(const std::string &text) = 0;
  virtual void warn(const std::string &text) = 0;
};

class Pressure_response {
 public:
  using Clock = uint64_t (*)(clockid_t);

  enum class Mode : bool { report, act };

  struct Settings {
    relief::Settings thresholds;
    uint64_t buffer_pool_min_bytes;
    bool operator==(const Settings &) const = default;
  };

  /** @param root  stands before every path that is read, for tests */
  Pressure_response(Mode mode, Server_memory *server, Clock clock = clock_us,
                    std::string root = {})
      : m_mode(mode),
        m_server(server),
        m_clock(clock),
        m_gauge(std::move(root)) {}

  Mode mode() const { return m_mode; }

  /** Reads the figures, and takes one step at most. Changed settings end the
  pause between two rounds. */
  void tick(const Settings &settings);

 private:
  void introduce();
  uint64_t kept_bytes() const;
  void act(const pressure::Figures &figures, uint64_t now_us);
  void report(const pressure::Figures &figures, uint64_t now_us);
  std::string purge(Pool pool);
  template <typename Step>
  std::string logged(Pool pool, purge_log::Action action, Step step);
  std::string line(const pressure::Figures &figures, const std::string &text);
  void report_end();

  const Mode m_mode;
  Server_memory *const m_server;
  const Clock m_clock;
  pressure::Gauge m_gauge;
  relief::State m_state;
  std::optional<Settings> m_settings;
  /** By the last round. */
  std::array<relief::Purged, pool_count> m_purged{};
  /** Since the pressure began. */
  uint64_t m_released_bytes{0};
  /** At the last tick. */
  bool m_statements_wait{false};
  /** The error log has a line about this pressure. */
  bool m_reported{false};
  bool m_introduced{false};
};

}  // namespace memdiag

#endif  // MEMDIAG_PRESSURE_RESPONSE_H
