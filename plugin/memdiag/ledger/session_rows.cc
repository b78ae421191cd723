#include "plugin/memdiag/ledger/session_rows.h"

#include <unordered_map>

namespace memdiag::sessions {
namespace {

/** @param of  the row without its pools */
void add(std::vector<Row> *to, Row of, const Nets &nets) {
  for (size_t i = 0; i < pool_count; ++i) {
    if (nets[i] == 0) continue;
    of.pool = pool_specs[i].name;
    of.bytes = nets[i];
    to->push_back(of);
  }
}

}  // namespace

std::vector<Row> rows(const Holdings &holdings,
                      std::span<const Server_session> sessions) {
  std::unordered_map<pthread_t, const Server_session *> of_threads;
  for (const Server_session &session : sessions) {
    const Server_session *&found = of_threads[session.thread];
    if (found == nullptr || session.processlist_id < found->processlist_id)
      found = &session;
  }
  std::vector<Row> all;
  Nets background{};
  for (const auto &[thread, nets] : holdings.threads) {
    if (const auto found = of_threads.find(thread); found != of_threads.end()) {
      const Server_session &session = *found->second;
      add(&all,
          {"session", session.processlist_id, session.user, session.host,
           session.program, session.digest, nullptr, 0},
          nets);
    } else {
      for (size_t i = 0; i < pool_count; ++i) background[i] += nets[i];
    }
  }
  const auto add_sum = [&all](const char *holder, const Nets &nets) {
    add(&all, {holder, {}, {}, {}, {}, {}, nullptr, 0}, nets);
  };
  add_sum("background", background);
  add_sum("ended", holdings.gone);
  return all;
}

}  // namespace memdiag::sessions
