#include "plugin/memdiag/advice/rules.h"

#include <algorithm>
#include <cinttypes>

#include "plugin/memdiag/base/text.h"

namespace memdiag::advisor {
namespace {

/** Connections that stay free under a max_connections that is advised; at least
a tenth of those that were used. */
constexpr uint64_t min_spare_connections = 10;
/** The largest default of the buffers of a session. To less than that no
statement lowers one. */
constexpr uint64_t least_session_buffer_bytes = 256 << 10;
/** The default of innodb_buffer_pool_chunk_size, and the default size of the
buffer pool. */
constexpr uint64_t chunk_bytes = 128 * mib;

class Configuration_rules : Rules {
 public:
  using Rules::Rules;

  void judge_configuration() {
    const Reading most = host::limit_bytes(m_now.host);
    if (most && m_now.global_buffers_bytes && m_now.session_buffers_bytes &&
        m_now.max_connections) {
      const uint64_t buffers = *m_now.global_buffers_bytes;
      const uint64_t global = buffers - std::min(buffers, not_counted_bytes());
      const uint64_t each = *m_now.session_buffers_bytes;
      const uint64_t all = global + each * *m_now.max_connections;
      if (global > *most)
        add("server_buffers",
            is_held() ? Severity::warning : Severity::critical, "server",
            "misconfiguration",
            "the server's own buffers take " + size(global) +
                ", more than the " + size(*most) + " that it may use" +
                words_of_ceiling(),
            remedy_of_server_buffers(*most));
      else if (all > *most)
        judge_session_buffers(
            "buffers take " + size(global) + " for the server and " +
                size(each) +
                text(" for each of %" PRIu64 " connections at once: %s in all, "
                     "more than the %s that the server may use",
                     *m_now.max_connections, size(all).c_str(),
                     size(*most).c_str()),
            *most - global);
    }
    if (m_now.background_threads && !*m_now.background_threads)
      add("background_threads", Severity::warning, "allocator",
          "misconfiguration",
          "the allocator's background threads are off: queries give back "
          "unused memory outside of the pools, at their own cost",
          "take background_thread:false out of MALLOC_CONF, in the service's "
          "file or the environment, and restart");
    if (m_now.preloaded)
      add("other_allocators", Severity::note, "allocator", "misconfiguration",
          "other allocators are loaded and serve nothing: " + *m_now.preloaded,
          "take them out of LD_PRELOAD (systemctl edit <service>) and restart");
  }

 private:
  /** A buffer pool of half the memory, unless the pool is not larger than that
  or would become too small to work with. */
  std::string remedy_of_server_buffers(uint64_t most) const {
    const uint64_t half = whole_units(most / 2);
    if (half >= chunk_bytes && m_now.buffer_pool_bytes &&
        *m_now.buffer_pool_bytes > half)
      return text("SET PERSIST innodb_buffer_pool_size = %" PRIu64, half);
    return "SELECT VARIABLE, VALUE, WORST_CASE_BYTES FROM "
           "INFORMATION_SCHEMA.MEMDIAG_BUDGET WHERE KIND = 'buffer' AND "
           "TIMES_OF = 'server' ORDER BY WORST_CASE_BYTES DESC shows which to "
           "lower";
  }

  /** The most clients within at least a day. */
  Reading used_in_a_day() const {
    const bool is_of_a_day =
        m_now.max_used_seconds &&
        static_cast<double>(*m_now.max_used_seconds) >= day;
    return is_of_a_day ? m_now.max_used_connections : std::nullopt;
  }

  /** Fewer connections, but only if that leaves room above the most that there
  were: a limit that clients reach is an outage. It ends no session.
  @param fitting  the number of connections whose buffers fit */
  std::optional<std::string> fewer_connections(uint64_t fitting) const {
    const Reading used = used_in_a_day();
    if (!used ||
        fitting < *used + std::max<uint64_t>(min_spare_connections, *used / 10))
      return std::nullopt;
    return text("SET PERSIST max_connections = %" PRIu64, fitting);
  }

  /** The largest buffer such that those of all connections fit; sessions that
  are there keep theirs. Until the next start: it was set on purpose.
  @param bytes  what each connection may take */
  std::optional<std::string> smaller_buffer(uint64_t bytes) const {
    const auto &largest = m_now.largest_session_buffer;
    if (!largest) return std::nullopt;
    const uint64_t each = *m_now.session_buffers_bytes;
    const uint64_t others = each - std::min(each, largest->bytes);
    if (bytes < others + least_session_buffer_bytes) return std::nullopt;
    return text("SET GLOBAL %s = %" PRIu64, largest->variable,
                (bytes - others) / 4096 * 4096);
  }

  std::string remedy_of_session_buffers(
      const std::optional<std::string> &fewer) const {
    if (fewer) return first_buffer() + *fewer;
    const Reading used = used_in_a_day();
    return first_buffer() +
           "SELECT VARIABLE, VALUE, WORST_CASE_BYTES FROM "
           "INFORMATION_SCHEMA.MEMDIAG_BUDGET WHERE KIND = 'buffer' AND "
           "TIMES_OF LIKE '%max_connections%' ORDER BY WORST_CASE_BYTES DESC "
           "shows which session buffers to lower" +
           (used ? text(": up to %" PRIu64 " clients were connected at once, "
                        "too many for a lower max_connections",
                        *used)
                 : std::string{});
  }

  /** @param bytes  what the connections may take together */
  void judge_session_buffers(std::string evidence, uint64_t bytes) {
    const uint64_t each = std::max<uint64_t>(*m_now.session_buffers_bytes, 1);
    const auto fewer = fewer_connections(bytes / each);
    const auto smaller =
        smaller_buffer(bytes / std::max<uint64_t>(*m_now.max_connections, 1));
    add("session_buffers", Severity::warning, "server", "misconfiguration",
        std::move(evidence), remedy_of_session_buffers(fewer))
        .statement = smaller ? smaller : fewer;
  }

  /** The user first lowers the buffer of which each connection takes most. */
  std::string first_buffer() const {
    const auto &largest = m_now.largest_session_buffer;
    if (!largest || largest->bytes <= least_session_buffer_bytes) return {};
    return text("of those that SET GLOBAL lowers, the largest is %s = %" PRIu64
                ", which each connection may take: lower it first; ",
                largest->variable, largest->bytes);
  }
};

}  // namespace

void judge_configuration(const Situation &situation,
                         std::vector<Finding> *found) {
  Configuration_rules(situation, found).judge_configuration();
}

}  // namespace memdiag::advisor
