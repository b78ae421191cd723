/*
  gzip (RFC 1952) and base64 (RFC 4648, one line, padded): a binary profile goes
  through SQL in this form.

  Threads: any. Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_GZIP_H
#define MEMDIAG_GZIP_H

#include <string>
#include <string_view>

namespace memdiag::profile {

std::string gzip(std::string_view bytes);

std::string base64(std::string_view bytes);

}  // namespace memdiag::profile

#endif  // MEMDIAG_GZIP_H
