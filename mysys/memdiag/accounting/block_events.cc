#include "mysys/memdiag/accounting/block_events.h"

#include "mysys/memdiag/routes/routes.h"
#include "mysys/memdiag/routes/scope_hooks.h"
#include "mysys/memdiag/accounting/scopes.h"
#include "mysys/memdiag/accounting/sessions.h"

namespace memdiag::notes {

constinit Switches switches{};

void detail::note(Pool pool, pools::Account account, int64_t bytes) noexcept {
  if (is_on(survivors)) scopes::note(pool, account, bytes);
  if (is_on(sessions)) memdiag::sessions::note(pool, bytes);
}

}  // namespace memdiag::notes

using memdiag::Scope;
namespace notes = memdiag::notes;
namespace scopes = memdiag::scopes;
namespace sessions = memdiag::sessions;

void memdiag_statement_ended(bool in_transaction, unsigned char *digest) {
  if (!notes::any_is_on()) return;
  memdiag_part_ended(digest);
  if (!notes::is_on(notes::survivors)) return;
  scopes::ended(Scope::statement);
  if (!in_transaction) scopes::ended(Scope::transaction);
}

void memdiag_part_ended(unsigned char *digest) {
  if (notes::is_on(notes::sessions)) sessions::statement_ended(digest);
}

void memdiag_connection_thread() {
  if (!memdiag::routes::is_disabled(memdiag::Pool::connection))
    memdiag::pools::bind_thread_to_connection();
}

void memdiag_session_began() {
  if (notes::is_on(notes::sessions)) sessions::session_began();
}

void memdiag_session_ended() {
  if (notes::is_on(notes::sessions)) sessions::session_ended();
  if (!notes::is_on(notes::survivors)) return;
  for (const Scope scope :
       {Scope::statement, Scope::transaction, Scope::session})
    scopes::ended(scope);
}
