/*
  documents.h, and the columns that an UPDATE reads. The linker redirects its
  calls of TABLE::mark_columns_needed_for_update() to this file (--wrap, in
  cmake/upstream/product.cmake).
*/

#include "storage/innobase/memdiag/documents.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "fts0fts.h"
#include "fts0types.h"
#include "mysql/plugin_ftparser.h"
#include "sql/field.h"
#include "sql/handler.h"
#include "sql/key.h"
#include "sql/sql_class.h"
#include "sql/table.h"
#include "storage/innobase/memdiag/fts_count.h"
#include "ut0rbt.h"
#include "ut0vec.h"

void mark_columns(TABLE *table, THD *thd, bool of_binlog) asm(
    "__real__ZN5TABLE30mark_columns_needed_for_updateEP3THDb");
void mark_columns_and_documents(TABLE *table, THD *thd, bool of_binlog) asm(
    "__wrap__ZN5TABLE30mark_columns_needed_for_updateEP3THDb");

namespace memdiag {
namespace {

/** A smaller document is not worth the count of its words. */
constexpr uint64_t large_document_bytes = 128 << 10;

constexpr uint64_t aligned(uint64_t bytes) { return (bytes + 7) & ~7; }

/** InnoDB makes these of a document (fts_words.h).
@name @{ */
constexpr uint64_t node_bytes =
    offsetof(ib_rbt_node_t, value) + sizeof(fts_token_t);
constexpr uint64_t word_of_document_bytes =
    node_bytes + sizeof(ib_vector_t) + sizeof(ulint);
/** The positions of a cached word are in a block of their own, with a header of
the allocator's. */
constexpr uint64_t word_of_cache_bytes =
    node_bytes + sizeof(ib_vector_t) + sizeof(fts_node_t) + 48;
/** A word that occurs again adds a position to a vector that doubles and leaves
its former elements behind. */
constexpr uint64_t again_in_document_bytes = 2 * sizeof(ulint);
constexpr uint64_t again_in_cache_bytes = 4;
/** @} */

/** No word is shorter than three letters by default, and something is between
two. */
constexpr uint64_t least_bytes_of_word = 4;

struct Counter {
  const CHARSET_INFO *charset;
  uint64_t words{0};
  uint64_t bytes{0};
  Different different{};

  void add(const uchar *word, size_t length, size_t characters) {
    if (characters < fts_min_token_size || characters > fts_max_token_size)
      return;
    ++words;
    bytes += length;
    different.add(hash_of_word(word, length));
  }
  void add_text(const uchar *text, size_t length) {
    const uchar *const end = text + length;
    while (text < end) {
      fts_string_t word;
      text += innobase_mysql_fts_get_token(const_cast<CHARSET_INFO *>(charset),
                                           text, end, &word);
      if (word.f_len != 0) add(word.f_str, word.f_len, word.f_n_char);
    }
  }
  Word_count count() const {
    return {words, std::min(different.count(), words), bytes};
  }
};

struct Text {
  const uchar *begin;
  size_t length;
};

bool is_in(const MY_BITMAP *set, const Field &field) {
  return bitmap_is_set(set, field.field_index());
}

/** Any other one has what an earlier row of the record left. That points to
memory that may be free. In a new row it has its default, which is short. */
bool has_value(const Field &field) {
  return is_in(field.table->read_set, field) ||
         is_in(field.table->write_set, field);
}

Text text_of(Field *field) {
  if (!has_value(*field) || field->is_null()) return {nullptr, 0};
  if (field->is_flag_set(BLOB_FLAG)) {
    const auto *const blob = static_cast<const Field_blob *>(field);
    return {blob->get_blob_data(), blob->get_length()};
  }
  return {field->data_ptr(), field->data_length()};
}

template <typename Visit>
void visit_texts(const KEY &index, Visit visit) {
  for (uint i = 0; i < index.user_defined_key_parts; ++i)
    visit(text_of(index.key_part[i].field));
}

uint64_t length_of_document(const KEY &index) {
  uint64_t bytes = 0;
  visit_texts(index, [&](const Text &text) { bytes += text.length; });
  return bytes;
}

uint64_t longest_document(const KEY &index) {
  uint64_t bytes = 0;
  for (uint i = 0; i < index.user_defined_key_parts; ++i)
    bytes += index.key_part[i].field->max_data_length();
  return bytes;
}

/** A parser that is a plugin may find words anywhere, and is not asked: its
document is not counted. */
Word_count words_of_document(const KEY &index) {
  Counter counter{index.key_part[0].field->charset()};
  visit_texts(index, [&](const Text &text) {
    counter.add_text(text.begin, text.length);
  });
  return counter.count();
}

struct Takes {
  uint64_t document_bytes{0};
  uint64_t cache_bytes{0};

  /** The next document of the row: the one before is gone, but for the cache.
   */
  void add(uint64_t length, const Word_count &words) {
    const uint64_t text =
        words.all == 0 ? 0 : aligned(words.bytes / words.all + 1);
    const uint64_t again = words.all - words.different;
    document_bytes =
        std::max(document_bytes,
                 length + words.different * (word_of_document_bytes + text) +
                     again * again_in_document_bytes);
    cache_bytes += words.different * (word_of_cache_bytes + text) +
                   again * again_in_cache_bytes;
  }
  int64_t bytes() const {
    return static_cast<int64_t>(document_bytes + cache_bytes);
  }
};

/** @param length_of  a document's, by its index */
template <typename Length, typename Visit>
void visit_documents(const TABLE &table, Length length_of, Visit visit) {
  for (uint i = 0; i < table.s->keys; ++i) {
    const KEY &index = table.key_info[i];
    if ((index.flags & (HA_FULLTEXT | HA_USES_PARSER)) != HA_FULLTEXT) continue;
    const uint64_t length = length_of(index);
    if (length >= large_document_bytes) visit(index, length);
  }
}

/** There is room for the row's documents whatever their words are. */
template <typename Length>
bool all_fit(const TABLE &table, Length length_of) {
  Takes most;
  visit_documents(table, length_of, [&](const KEY &, uint64_t length) {
    const uint64_t words = length / least_bytes_of_word;
    most.add(length, {words, words, length});
  });
  return most.bytes() == 0 || memdiag_commit_is_small(most.bytes());
}

/** A value that was not read is not known. */
bool differs(const Field &field, const TABLE &table) {
  if (!is_in(table.write_set, field)) return false;
  return !is_in(table.read_set, field) ||
         field.is_null() != field.is_null_in_record(table.record[1]) ||
         (!field.is_null() &&
          field.cmp_binary_offset(table.record[1] - table.record[0]) != 0);
}

/** Calls visit(column) for each one that makes InnoDB collect the words of all
documents of a row if it is changed.
@return true: visit() said so, and the others were left out */
template <typename Visit>
bool visit_columns(const TABLE &table, Visit visit) {
  for (uint i = 0; i < table.s->keys; ++i) {
    const KEY &index = table.key_info[i];
    if ((index.flags & HA_FULLTEXT) == 0) continue;
    for (uint part = 0; part < index.user_defined_key_parts; ++part)
      if (visit(*index.key_part[part].field)) return true;
  }
  return std::any_of(
      table.field, table.field + table.s->fields, [&](const Field *field) {
        return strcmp(field->field_name, FTS_DOC_ID_COL_NAME) == 0 &&
               visit(*field);
      });
}

bool changes_document(const TABLE &table) {
  return visit_columns(
      table, [&](const Field &field) { return differs(field, table); });
}

bool is_of_innodb(const TABLE &table) {
  return table.s->db_type()->db_type == DB_TYPE_INNODB;
}

/** An UPDATE may change a document, and would not read all that InnoDB
collects. No row is known yet, and each one that the UPDATE looks at is read. So
only the columns' types tell that there will be room: a document in a TEXT is
never large, and one in a LONGTEXT has no bound. The binary log leaves out what
is read for this: binlog_prepare_row_images(). */
void read_documents(TABLE *table) {
  if (!is_of_innodb(*table) ||
      !visit_columns(*table,
                     [table](const Field &field) {
                       return is_in(table->write_set, field);
                     }) ||
      all_fit(*table, longest_document))
    return;
  for (uint i = 0; i < table->s->keys; ++i)
    if ((table->key_info[i].flags & (HA_FULLTEXT | HA_USES_PARSER)) ==
        HA_FULLTEXT)
      table->mark_columns_used_by_index_no_reset(i, table->read_set);
}

}  // namespace

bool refuses_document(TABLE *table, const unsigned char *before,
                      const unsigned char *row) {
  // The fields point into this record.
  if (row != table->record[0] || !is_of_innodb(*table)) return false;
  if (all_fit(*table, length_of_document) ||
      (before == table->record[1] && !changes_document(*table)))
    return false;
  Takes takes;
  visit_documents(*table, length_of_document,
                  [&](const KEY &index, uint64_t length) {
                    takes.add(length, words_of_document(index));
                  });
  if (!memdiag_refuses_commit(takes.bytes())) return false;
  // No handler in a trigger may go on: the row is there, and is not logged.
  if (table->in_use->in_sub_stmt) table->in_use->is_fatal_sub_stmt_error = true;
  return true;
}

}  // namespace memdiag

void mark_columns_and_documents(TABLE *table, THD *thd, bool of_binlog) {
  if (memdiag_has_gate.load(std::memory_order_relaxed))
    memdiag::read_documents(table);
  mark_columns(table, thd, of_binlog);
}
