#include "memdiag_innodb.h"

#include "buf0buf.h"
#include "srv0shutdown.h"
#include "srv0start.h"
#include "univ.i"

namespace memdiag::innodb {
namespace {

/** InnoDB has started, and frees nothing yet of what is read here. */
bool is_up() {
  return buf_pool_ptr != nullptr && !srv_is_being_started &&
         srv_shutdown_state.load() < SRV_SHUTDOWN_LAST_PHASE;
}

}  // namespace

std::optional<Buffer_pool> buffer_pool() {
  if (!is_up()) return std::nullopt;
  ulint data;
  ulint free;
  ulint dirty;
  buf_get_total_list_len(&data, &free, &dirty);
  return Buffer_pool{UNIV_PAGE_SIZE, data, dirty, free, buf_pool_get_n_pages()};
}

}  // namespace memdiag::innodb
