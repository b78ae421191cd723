/*
  Shrinks a session's network buffer (patches/0023).

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

/** Like net_realloc(), for a buffer whose content is no longer needed. If there
is no memory for the smaller buffer, the session keeps the old one;
net_realloc() would end the session.
@param length  bytes, rounded up to IO_SIZE */
inline void shrink_buffer(NET *net, size_t length) {
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
