/* Untrusted text for an XML document. */

#ifndef MEMDIAG_XML_TEXT_H
#define MEMDIAG_XML_TEXT_H

#include <string>
#include <string_view>

namespace memdiag::profile {

/** A text that is safe within an element and within a quoted attribute. What
XML 1.0 does not allow (control characters, wrong UTF-8) becomes U+FFFD: one
such byte would make the whole document unreadable.
Threads: any. Errors: std::bad_alloc. */
std::string xml_text(std::string_view text);

}  // namespace memdiag::profile

#endif  // MEMDIAG_XML_TEXT_H
