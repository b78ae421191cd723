#include "plugin/memdiag/server/server_sessions.h"

#include <algorithm>
#include <utility>

#include "mutex_lock.h"
#include "plugin/memdiag/server/perfschema_memory.h"
#include "plugin/memdiag/server/perfschema_session.h"
#include "sql/auth/sql_security_ctx.h"
#include "sql/mysqld_thd_manager.h"
#include "sql/sql_class.h"

namespace memdiag::sessions {
namespace {

class Collect : public Do_THD_Impl {
 public:
  void operator()(THD *thd) override {
    if (thd->real_id == null_thread_initializer) return;
    Server_session session{};
    session.thread = thd->real_id;
    session.processlist_id = thd->thread_id();
    {
      MUTEX_LOCK(guard, &thd->LOCK_thd_security_ctx);
      // Not that of a stored program which it may be in.
      const Security_context &context = thd->m_main_security_ctx;
      const LEX_CSTRING user = context.user();
      if (user.str != nullptr)
        session.user.assign(user.str, user.length);
      else
        session.user =
            thd->system_thread ? "system user" : "unauthenticated user";
      const LEX_CSTRING host = context.host_or_ip();
      if (host.str != nullptr) session.host.assign(host.str, host.length);
    }
    session.program = perfschema::program_name(thd->get_psi());
    if (const auto digest = perfschema::current_digest(thd->get_psi()))
      session.digest = text_of(*digest);
    found.push_back(std::move(session));
  }

  std::vector<Server_session> found;
};

/** held_at_most() costs more than a session with less is worth. */
constexpr uint64_t worth_bounding_bytes = 16 << 20;

class Find_largest : public Do_THD_Impl {
 public:
  /** @param all  where given, bytes are those that a session can still hold */
  explicit Find_largest(bool clients_only,
                        const std::vector<instruments::Counted> *all = nullptr)
      : m_clients_only(clients_only), m_all(all) {}

  void operator()(THD *thd) override {
    if (m_clients_only && thd->system_thread != NON_SYSTEM_THREAD) return;
    auto bytes = perfschema::memory_bytes(thd->get_psi());
    if (bytes && *bytes >= worth_bounding_bytes && m_all != nullptr)
      bytes =
          std::min(*bytes, perfschema::held_at_most(thd->get_psi(), *m_all));
    if (!bytes || *bytes <= (found ? found->bytes : 0)) return;
    found = {thd->thread_id(), *bytes,
             perfschema::current_digest(thd->get_psi()).value_or(Digest{})};
  }

  std::optional<history::Holder> found;

 private:
  const bool m_clients_only;
  const std::vector<instruments::Counted> *const m_all;
};

std::optional<history::Holder> find_largest(Find_largest find) {
  Global_THD_manager::get_instance()->do_for_all_thd_copy(&find);
  return find.found;
}

}  // namespace

std::optional<history::Holder> largest_session() {
  return find_largest(Find_largest(false));
}

std::optional<history::Holder> largest_client(const Ask_counted &counted) {
  const auto found = find_largest(Find_largest(true));
  if (!found || found->bytes < worth_bounding_bytes) return found;
  return find_largest(Find_largest(true, &counted()));
}

std::vector<Server_session> server_sessions() {
  Collect collect;
  Global_THD_manager::get_instance()->do_for_all_thd_copy(&collect);
  return std::move(collect.found);
}

}  // namespace memdiag::sessions
