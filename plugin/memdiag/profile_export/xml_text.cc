#include "plugin/memdiag/profile_export/xml_text.h"

#include <cstddef>

#include "plugin/memdiag/base/utf8.h"

namespace memdiag::profile {
namespace {

/** The length of the character at the beginning of a text; 0: XML does not
allow it, or it is no UTF-8. */
size_t character_length(std::string_view text) {
  const auto [length, code] = utf8::first_of(text);
  const bool is_control = code < ' ' || (code >= 0x7f && code < 0xa0);
  if ((is_control && code != '\n' && code != '\t') || (code & 0xfffe) == 0xfffe)
    return 0;
  return length;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_length(text);
    switch (text[0]) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        if (length == 0)
          escaped += "\xef\xbf\xbd";
        else
          escaped += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return escaped;
}

}  // namespace memdiag::profile
