/*
  Shrinks a session's network buffer (patches/diets/
  0023-net-buffer-shrinks.patch): what a long statement needed is not kept as
  long as the session.

  Threads: the session's own. Errors: without memory the session keeps its
  buffer.
*/

#ifndef MEMDIAG_NET_H
#define MEMDIAG_NET_H

#include <cstddef>

#include "my_io.h"
#include "my_sys.h"
#include "mysql/service_mysql_alloc.h"
#include "mysql_com.h"
#include "sql/psi_memory_key.h"

namespace memdiag {

/** A buffer that is not larger stays as it is. */
constexpr size_t kept_buffer = 1024 * 1024;

/** Like net_realloc(), after a statement whose content is no longer needed. If
there is no memory for the smaller buffer, the session keeps the old one;
net_realloc() would end the session. A compressed connection keeps it, because
it may hold a part of the next statement.
@param ends    the session ends: nothing to do
@param length  bytes, rounded up to IO_SIZE */
inline void shrink_buffer(bool ends, NET *net, size_t length) {
  if (ends || net->max_packet <= kept_buffer || net->compress) return;
  length = (length + IO_SIZE - 1) & ~size_t{IO_SIZE - 1};
  auto *const buffer = static_cast<uchar *>(
      my_malloc(key_memory_NET_buff,
                length + NET_HEADER_SIZE + COMP_HEADER_SIZE, MYF(0)));
  if (buffer == nullptr) return;
  my_free(net->buff);
  net->buff = net->write_pos = net->read_pos = buffer;
  net->max_packet = static_cast<unsigned long>(length);
  net->buff_end = buffer + length;
}

}  // namespace memdiag

#endif  // MEMDIAG_NET_H
