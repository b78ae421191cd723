#include "plugin/memdiag/profile_export/xml_text.h"

#include <cstddef>

namespace memdiag::profile {
namespace {

/** The length of the character at the beginning of a text; 0: XML does not
allow it, or it is no UTF-8. */
size_t character_length(std::string_view text) {
  const auto byte = [text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned first = byte(0);
  if (first < 0x80)
    return (first >= ' ' && first != 0x7f) || first == '\n' || first == '\t';
  const size_t length = first < 0xc2   ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || length > text.size()) return 0;
  unsigned code = first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  // Longer than needed, surrogates, C1 controls, beyond Unicode, not a
  // character.
  if ((length == 2 && code < 0xa0) || (length == 3 && code < 0x800) ||
      (length == 4 && (code < 0x10000 || code > 0x10ffff)) ||
      (code >= 0xd800 && code < 0xe000) || (code & 0xfffe) == 0xfffe)
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
