/*
  The parser of a JSON schema makes a document of the text with malloc(), which
  cannot be refused a block, and looks for no KILL meanwhile. Below the ceiling,
  statements with long schemas would go on a little at a time until they have
  taken all. So the document's memory is asked for before it is made: its
  statement waits, or ends with an error.

  The linker redirects the two calls that begin with a text to this file
  (--wrap, in cmake/upstream/product.cmake).

  Threads: the session's. Errors: as the replaced functions. Units: bytes.
*/

#include "sql-common/json_schema.h"

#include <algorithm>
#include <cstddef>

#include "mysys/memdiag/upstream/message_hooks.h"

bool is_valid_by_text(const char *document, size_t document_length, const char *schema, size_t schema_length, const JsonSchemaErrorHandler &errors, const JsonErrorHandler &too_deep, bool *is_valid, Json_schema_validation_report *report) asm(
    "__real__Z20is_valid_json_schemaPKcmS0_"
    "mRK22JsonSchemaErrorHandlerRKSt8functionIFvvEEPbP29Json_schema_validation_"
    "report");
bool is_valid_if_there_is_room(const char *document, size_t document_length, const char *schema, size_t schema_length, const JsonSchemaErrorHandler &errors, const JsonErrorHandler &too_deep, bool *is_valid, Json_schema_validation_report *report) asm(
    "__wrap__Z20is_valid_json_schemaPKcmS0_"
    "mRK22JsonSchemaErrorHandlerRKSt8functionIFvvEEPbP29Json_schema_validation_"
    "report");
bool initialize(Json_schema_validator *self, MEM_ROOT *mem_root, const char *schema, size_t length, const JsonSchemaErrorHandler &errors, const JsonErrorHandler &too_deep) asm(
    "__real__ZN21Json_schema_validator10initializeEP8MEM_"
    "ROOTPKcmRK22JsonSchemaErrorHandlerRKSt8functionIFvvEE");
bool initialize_if_there_is_room(Json_schema_validator *self, MEM_ROOT *mem_root, const char *schema, size_t length, const JsonSchemaErrorHandler &errors, const JsonErrorHandler &too_deep) asm(
    "__wrap__ZN21Json_schema_validator10initializeEP8MEM_"
    "ROOTPKcmRK22JsonSchemaErrorHandlerRKSt8functionIFvvEE");

namespace {

/** A value in a document, and in the parser's stack, which grows by half and
holds the old values beside the new ones meanwhile. Measured: 80 to 101 bytes.
*/
constexpr size_t of_value = 100;

/** Each value but the first one comes behind one of these. */
bool comes_before_value(char c) {
  return c == ',' || c == ':' || c == '[' || c == '{';
}

bool is_refused(const char *schema, size_t length) {
  const auto values =
      std::count_if(schema, schema + length, comes_before_value);
  return memdiag::value_is_refused((values + 1) * of_value + length);
}

}  // namespace

bool is_valid_if_there_is_room(const char *document, size_t document_length,
                               const char *schema, size_t schema_length,
                               const JsonSchemaErrorHandler &errors,
                               const JsonErrorHandler &too_deep, bool *is_valid,
                               Json_schema_validation_report *report) {
  return is_refused(schema, schema_length) ||
         is_valid_by_text(document, document_length, schema, schema_length,
                          errors, too_deep, is_valid, report);
}

bool initialize_if_there_is_room(Json_schema_validator *self,
                                 MEM_ROOT *mem_root, const char *schema,
                                 size_t length,
                                 const JsonSchemaErrorHandler &errors,
                                 const JsonErrorHandler &too_deep) {
  return is_refused(schema, length) ||
         initialize(self, mem_root, schema, length, errors, too_deep);
}
