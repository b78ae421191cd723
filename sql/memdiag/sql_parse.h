/*
  What the patches of sql/sql_parse.cc need, with and without patches/diets.
*/

#ifndef MEMDIAG_SQL_PARSE_H
#define MEMDIAG_SQL_PARSE_H

#include "mysys/memdiag/upstream/scope_hooks.h"
#include "sql/memdiag/net.h"
#include "sql/memdiag/own_names.h"
#include "sql/memdiag/parsed_text.h"

#endif  // MEMDIAG_SQL_PARSE_H
