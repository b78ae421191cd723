/*
  The LEXes of one stored program: expressions that leave the same LEX behind
  share one.

  An IF, a SET, a DECLARE has a LEX with a query expression and a query block,
  4 KB, because it may contain subqueries. Most expressions use variables and
  literals only. Their items refer to none of the three objects, and parsing
  leaves the same values in them. Such an instruction takes the LEX of an
  earlier one, and the next expression is parsed where its own LEX was. Upstream
  itself lets the instructions of DECLARE a, b INT share one.

  A LEX is shared only if all of this holds, otherwise it stays as in stock:
  - it is an expression's, and uses no table, routine or loadable function.
    Upstream keeps no text of such an expression, so it is never parsed again;
  - it, its query expression and its query block have the same bytes as those of
    an earlier one, except for pointers to themselves;
  - no memory that the program took since its last statement points to one of
    the three, except the contexts of NEW and OLD columns, which never use them
    and get the shared one. A word that merely looks like such a pointer counts
    as one.

  Two instructions of one instance of a program are never executed at the same
  time, and a recursive call executes another instance.

  The first execution of an expression resolves it. That reads and sets what
  must not come from another expression: a query block that was resolved before
  keeps the constants of AND and OR. So before_expression() gives the query
  expression and the query block what parsing left in them. Later executions
  only read what is the same for all.

  Ownership: all of it lies in the program's memory root, and
  sp_head::m_spare_lex points to the list. destroy_lexes() destroys the shared
  LEXes; instructions own those that they do not share. Threads: the one that
  parses, executes or destroys the program. Errors: without memory, as upstream:
  new_lex() is nullptr.
*/

#ifndef MEMDIAG_SP_LEXES_H
#define MEMDIAG_SP_LEXES_H

class Query_arena;
class sp_head;
class THD;
struct LEX;

namespace memdiag {

/** A LEX for the next expression or statement of the program that is being
parsed. Then start_lex() it as thd->lex. */
LEX *new_lex(THD *thd, sp_head *program);

/** The work of lex_start(). */
void start_lex(THD *thd, const sp_head *program);

/**
  The LEX that an instruction keeps, which is being made while `lex` is parsed.
  Sets *is_owner to false if the instruction does not own it.
*/
LEX *lex_to_keep(LEX *lex, bool *is_owner);

/**
  Parsing has finished with thd->lex, which upstream has taken off its stack. If
  no instruction keeps it, upstream destroys it afterwards.
*/
void end_lex(const THD *thd, const sp_head *program);

/**
  An instruction that does not own `lex` is about to evaluate its expression.
  `arena` is the instruction's.
*/
void before_expression(LEX *lex, const Query_arena &arena);

/** The program's instructions are destroyed. */
void destroy_lexes(const sp_head *program);

}  // namespace memdiag

#endif  // MEMDIAG_SP_LEXES_H
