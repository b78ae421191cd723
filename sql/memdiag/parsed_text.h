/*
  What the parser makes of a statement's text and does not need any more when
  the text is parsed (parse_nodes.h): parse_sql() has one object for each text.

  Ownership: the object owns the memory root of the placeholders. Threads: the
  session's own. Errors: as parse_nodes.h has them. Units: bytes.
*/

#ifndef MEMDIAG_PARSED_TEXT_H
#define MEMDIAG_PARSED_TEXT_H

#include <cstddef>

#include "my_alloc.h"
#include "sql/memdiag/parse_nodes.h"

class THD;

namespace memdiag {

/** While it lives, `thd` parses a text. Placeholders end with it if the
statement is prepared or its text is long. The packet that brought a long text
ends before: the session has a copy. If either was large, its pages go back to
the system: the statement goes on with other memory. */
class Parsed_text {
 public:
  explicit Parsed_text(THD *thd);
  Parsed_text(const Parsed_text &) = delete;
  Parsed_text &operator=(const Parsed_text &) = delete;
  ~Parsed_text() {
    if (m_root.allocated_size() >= many) give_back();
  }

 private:
  static constexpr size_t many = 16 << 20;
  static void end_packet(THD *thd);
  void give_back();

  MEM_ROOT m_root;
  const Parse_nodes m_nodes;
};

}  // namespace memdiag

#endif  // MEMDIAG_PARSED_TEXT_H
