/*
  What parsing the body of a stored program does to the program's memory root
  (patches/diets/0021-sp-shared-lex.patch), and to the placeholders of the
  parser (sql/memdiag/parse_nodes.h). And the memory of triggers' programs: they
  belong to open tables, but have the memory key of those that sessions cache.

  A root's blocks grow, and a session keeps the empty part of the last one for
  as long as it caches the program. So each statement of the program that is
  parsed sets the size of the next block again. A small program has smaller
  blocks.

  A root with a limit keeps stock's sizes: whole blocks count towards it. Units:
  bytes. Threads: the one that parses the program; trigger_bytes(): any.
*/

#ifndef MEMDIAG_PROGRAM_BLOCKS_H
#define MEMDIAG_PROGRAM_BLOCKS_H

#include <cstddef>

#include "my_alloc.h"
#include "mysys/memdiag/upstream/root_blocks.h"

class sp_head;
class THD;

namespace memdiag {

/** A size class of jemalloc without the page that it adds to larger ones. */
constexpr size_t program_block_size = size_t{14} * 1024;
constexpr size_t first_program_block_size = size_t{8} * 1024;
/** A program that has taken less is small. */
constexpr size_t small_program = 4 * first_program_block_size;

/** A statement of the program whose body is parsed into `root` begins. */
inline void size_blocks(MEM_ROOT *root) {
  if (root_blocks::is_limited(root->get_max_capacity())) return;
  root->set_block_size(root->allocated_size() < small_program
                           ? first_program_block_size
                           : program_block_size);
}

/** The body of a program is about to be parsed into `program`, its root:
placeholders get a root of their own, and expressions may share LEXes from here
on. See end_parse_nodes(). */
void begin_parse_nodes(MEM_ROOT *program);

/** The body of thd's program has been parsed, or its parsing was given up. */
void end_body(const THD *thd);

/** A program ends, whatever has become of it. */
void end_program(sp_head *program);

/** trigger_roots.cc knows the root of a trigger's program from the end of its
parsing until the program ends. A build without diets notes none. */
void note_trigger(const MEM_ROOT *program);
void forget_trigger(const MEM_ROOT *program);

/** What the memory roots of all triggers' programs have, those in the midst of
a CREATE TRIGGER as well. Takes a mutex for 0.1 us for each. A root that grows
meanwhile is read without a lock. */
size_t trigger_bytes();

}  // namespace memdiag

#endif  // MEMDIAG_PROGRAM_BLOCKS_H
