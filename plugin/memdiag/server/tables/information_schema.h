/*
  Binds the table specs to the server: the privilege check and the writing of
  rows that the statement wants. Other parts are in files of their own:
    table_fields.h     field definitions
    statement.h        readings that the tables of a statement share
    table_rows.h       the rows of each table

  The session's own thread fills a table. Without the privilege PROCESS that is
  an error, as for InnoDB's tables. KILL and MAX_EXECUTION_TIME end a fill
  between two rows and within long readings (mysys/memdiag/base/interruption.h).
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
