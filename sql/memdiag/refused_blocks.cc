/*
  Strings that did not get their memory. Below the ceiling, a statement that was
  told to end is refused large blocks. Most of upstream's code looks whether it
  got them. INSERT(), UPPER() and LOWER() would change the text of their
  argument instead, which may be that of a prepared statement. Where rows are
  grouped, the first row of a group would be written to address 0, or read from
  there. And a text whose last zero is missing would be read behind its end: so
  much is not refused.

  The linker redirects the server's calls of these functions to this file
  (--wrap, in cmake/upstream/product.cmake).

  Ownership: the callers'. Threads: the session's. Errors: the statement has one
  already. Units: bytes.
*/

#include <cstddef>

#include "mysys/memdiag/ceiling/sensor.h"
#include "sql/pack_rows.h"
#include "sql_string.h"

using pack_rows::TableCollection;

String *own_copy_of_server(String *to, String *from, size_t length) asm(
    "__real__Z19copy_if_not_allocedP6StringS0_m");
String *own_copy_or_nothing(String *to, String *from, size_t length) asm(
    "__wrap__Z19copy_if_not_allocedP6StringS0_m");
bool reallocate(String *text, size_t length,
                bool on_heap) asm("__real__ZN6String11mem_reallocEmb");
bool reallocate_for_zero(String *text, size_t length,
                         bool on_heap) asm("__wrap__ZN6String11mem_reallocEmb");
bool store(const TableCollection &tables, String *row) asm(
    "__real__ZN9pack_rows21StoreFromTableBuffersERKNS_"
    "15TableCollectionEP6String");
bool store_if_there_is_room(const TableCollection &tables, String *row) asm(
    "__wrap__ZN9pack_rows21StoreFromTableBuffersERKNS_"
    "15TableCollectionEP6String");
const uchar *load(const TableCollection &tables, const uchar *row) asm(
    "__real__ZN9pack_rows20LoadIntoTableBuffersERKNS_15TableCollectionEPKh");
const uchar *
load_if_there_is_one(const TableCollection &tables, const uchar *row) asm(
    "__wrap__ZN9pack_rows20LoadIntoTableBuffersERKNS_15TableCollectionEPKh");

/** The caller changes what it gets: it is never the text of another. */
String *own_copy_or_nothing(String *to, String *from, size_t length) {
  String *const copy = own_copy_of_server(to, from, length);
  if (copy != from || from->is_alloced()) return copy;
  to->length(0);
  return to;
}

/** A text that does not grow wants room for a zero (c_ptr(), c_ptr_safe()). */
bool reallocate_for_zero(String *text, size_t length, bool on_heap) {
  if (length != text->length()) return reallocate(text, length, on_heap);
  const memdiag::ceiling::No_wait no_wait;
  return reallocate(text, length, on_heap);
}

/** Rows without BLOBs have had their room since the plan was made. */
bool store_if_there_is_room(const TableCollection &tables, String *row) {
  return (row->ptr() == nullptr &&
          row->reserve(pack_rows::ComputeRowSizeUpperBound(tables))) ||
         store(tables, row);
}

const uchar *load_if_there_is_one(const TableCollection &tables,
                                  const uchar *row) {
  return row == nullptr ? nullptr : load(tables, row);
}
