#include "sql/memdiag/parsed_text.h"

#include "mysys/memdiag/purging/purge.h"

namespace memdiag {

void Parsed_text::give_back() {
  m_root.Clear();
  (void)purging::purge(Pool::statement);
}

}  // namespace memdiag
