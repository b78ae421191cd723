/*
  Open tables that no statement uses.

  Upstream's tdc_flush_unused_tables() closes those of the data dictionary, too.
  INSTALL PLUGIN of an INFORMATION_SCHEMA table writes to these while it holds
  LOCK_plugin. To open one that was closed takes LOCK_plugin again, and the
  whole server stops (on stock: FLUSH TABLES; INSTALL PLUGIN ...). So they stay
  open.

  Threads: any; takes the locks of the table cache, as FLUSH TABLES does.
  Errors: without memory nothing is closed.
*/

#ifndef MEMDIAG_UNUSED_TABLES_H
#define MEMDIAG_UNUSED_TABLES_H

namespace memdiag {

/** Close the unused tables of all caches, but for the dictionary's. */
void close_unused_tables();

}  // namespace memdiag

#endif  // MEMDIAG_UNUSED_TABLES_H
