/*
  A session whose client sleeps keeps the blocks of its network buffer and of
  the row that it sent last, and gives their pages back. Both are written before
  they are read again. To free the blocks would be wrong: the thread waits in a
  read into the network buffer.

  mysqld is linked with --undefined=memdiag_give_back_buffers
  (cmake/upstream/product.cmake).

  Threads: the session's own. Errors: the pages stay.
*/

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/upstream/idle_hooks.h"
#include "sql/current_thd.h"
#include "sql/protocol_classic.h"
#include "sql/sql_class.h"

namespace {

/** Gives back the pages that lie in the range as a whole. */
void give_back(const void *begin, const void *end) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page;
  const auto to = reinterpret_cast<uintptr_t>(end) / page;
  if (from < to)
    (void)madvise(reinterpret_cast<void *>(from * page), (to - from) * page,
                  MADV_DONTNEED);
}

}  // namespace

void memdiag_give_back_buffers() {
  THD *const thd = current_thd;
  // False: a part of a packet has come.
  if (thd == nullptr || !thd->m_server_idle || !thd->is_classic_protocol())
    return;
  const int error = errno;
  Protocol_classic *const protocol = thd->get_protocol_classic();
  const NET *const net = protocol->get_net();
  // A part of a header may have come. Of a compressed packet, the next ones may
  // be here.
  if (net->buff != nullptr && !net->compress)
    give_back(net->buff + NET_HEADER_SIZE, net->buff_end);
  const String *const row = protocol->get_output_packet();
  if (row->is_alloced())
    give_back(row->ptr(), row->ptr() + row->alloced_length());
  errno = error;
}
