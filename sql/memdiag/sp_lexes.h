/*
  The LEXes of one stored program: plain expressions share one
  (patches/diets/0021-sp-shared-lex.patch).

  An IF, a SET, a DECLARE has a LEX with a query expression and a query block,
  4 KB, because it may contain subqueries. Most expressions consist of
  variables, literals, NEW and OLD columns, and functions of them. sp_lexes.cc
  names the classes of such items. None of them refers to the three objects,
  except for the name resolution context of a NEW or OLD column.

  An instruction takes the LEX of an earlier one of the same program only if

  - all items that the parser made for it are of these classes;
  - its LEX, query expression and query block are as the parser creates them: no
    table, routine, subquery, user variable that is set, parameter, hint, clause
    of a query, or unsafe flag. is_plain() names the members;
  - both have the same scope, command and kind of SET.

  Otherwise it has its own, as in stock. Upstream keeps no text of an expression
  without tables and routines, so a plain one is never parsed again. Upstream
  itself lets the instructions of DECLARE a, b INT share one LEX; those do not
  share it with others.

  Then the next expression is parsed where the LEX was that no instruction kept.
  A SET has two of them, and its instruction keeps only the second. Its first
  one is replaced only if everything that was parsed meanwhile was plain.

  Two instructions of one instance of a program are never executed at the same
  time: a plain expression calls nothing, and a recursive call executes another
  instance. What executions change in the three objects is

  - what upstream sets before each execution: thd, the current query block, and
    whether it is optimized, executed and cleaned;
  - what resolving sets: counts of conditions, whether the query expression is
    prepared and the block has been executed. The state of an instruction's
    arena says whether its expression has been resolved. Until then each
    execution gets a new query expression and a new query block, as after
    parsing. So constants of AND and OR are removed in each expression, and one
    that could not be resolved leaves nothing for others;
  - whether it has counted towards the limits of a connection's memory. The
    first execution of each expression counts anew;
  - whether the statement may be cached. Only partitions, views and prepared
    statements ask, each of a LEX of their own.

  Ownership: all of it lies in the program's memory root. Each instruction that
  shares a LEX owns it, and the last one destroys it. Threads: the one that
  parses, executes or destroys the program. Errors: without memory as upstream:
  open_lex() is nullptr.
*/

#ifndef MEMDIAG_SP_LEXES_H
#define MEMDIAG_SP_LEXES_H

class Query_arena;
class sp_head;
class THD;
struct LEX;
struct MEM_ROOT;

namespace memdiag {

/** The body of a program is about to be parsed into `program`, its root. */
void begin_lexes(const MEM_ROOT *program);

/** A LEX for the next expression or statement of the program that is being
parsed: thd->lex from now on, and started. */
LEX *open_lex(THD *thd, const sp_head *program);

/** The LEX to keep for an instruction that is about to own `lex`. */
LEX *lex_to_keep(LEX *lex);

/** An owner is about to destroy *lex. If other instructions keep it, makes it
nullptr and says true. */
bool others_keep(LEX **lex);

/**
  Parsing has finished with thd->lex, which upstream has taken off its stack. If
  no instruction keeps it, upstream destroys it afterwards.
*/
void end_lex(const THD *thd);

/** An instruction is about to be executed with `lex`. `arena` is its own. */
void before_expression(LEX *lex, const Query_arena &arena);

}  // namespace memdiag

#endif  // MEMDIAG_SP_LEXES_H
