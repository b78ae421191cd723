/*
  Binds the table specs to the server: field definitions, the privilege check,
  what a statement has seen (look.h), row writing. Tables are filled by the
  session's own thread; without the privilege PROCESS that is an error, as for
  InnoDB's.
*/

#ifndef MEMDIAG_INFORMATION_SCHEMA_H
#define MEMDIAG_INFORMATION_SCHEMA_H

namespace memdiag::information_schema {

/** The init function of the INFORMATION_SCHEMA plugin of a table of tables.h.
@param schema_table  the server's ST_SCHEMA_TABLE
@return 0: it cannot fail */
template <const auto &table>
int init(void *schema_table);

}  // namespace memdiag::information_schema

#endif  // MEMDIAG_INFORMATION_SCHEMA_H
