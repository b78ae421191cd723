/*
  Sort buffers of index builds: their arrays of rows are DDL's memory, as the
  rows are. A container of InnoDB's otherwise has the instrument
  memory/innodb/std, which leads to pool innodb: 12% of the sort buffer of a
  small key.

  Included by ddl0impl-buffer.h. Its array is the only one with elements of this
  type.
*/

#ifndef MEMDIAG_DDL_H
#define MEMDIAG_DDL_H

#include "data0data.h"
#include "ut0new.h"

namespace ut {

template <>
inline allocator<dfield_t *>::allocator() : allocator(mem_key_ddl) {}

}  // namespace ut

#endif  // MEMDIAG_DDL_H
