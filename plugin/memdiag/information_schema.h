/*
  Binds the table specs to the server: field definitions, the privilege check,
  one snapshot a statement, row writing. Tables are filled by the session's own
  thread; without the privilege PROCESS that is an error, as for InnoDB's.

  Each function is the init function of one INFORMATION_SCHEMA plugin.
  @param schema_table  the server's ST_SCHEMA_TABLE
  @return 0: they cannot fail
*/

#ifndef MEMDIAG_INFORMATION_SCHEMA_H
#define MEMDIAG_INFORMATION_SCHEMA_H

namespace memdiag::information_schema {

int init_allocator(void *schema_table);
int init_pools(void *schema_table);
int init_arenas(void *schema_table);
int init_regions(void *schema_table);
int init_routes(void *schema_table);
int init_survivors(void *schema_table);

}  // namespace memdiag::information_schema

#endif  // MEMDIAG_INFORMATION_SCHEMA_H
