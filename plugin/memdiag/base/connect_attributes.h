/*
  Finds one of a session's connection attributes without converting all of them
  to another character set.

  The attributes are what the client sent: names and values in turn, each behind
  its length in one, three, four or nine bytes, as the protocol encodes lengths.
  A pure function; nothing is allocated. No content of the text does harm.
*/

#ifndef MEMDIAG_CONNECT_ATTRIBUTES_H
#define MEMDIAG_CONNECT_ATTRIBUTES_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace memdiag {

/** Takes the length and the text behind it from the front.
@return empty: the text is cut short, or is NULL */
inline std::optional<std::string_view> take_encoded(std::string_view *from) {
  if (from->empty()) return std::nullopt;
  const auto byte = [from](size_t i) {
    return static_cast<uint64_t>(static_cast<unsigned char>((*from)[i]));
  };
  const uint64_t first = byte(0);
  if (first == 251 || first == 255) return std::nullopt;
  const size_t more = first < 251 ? 0 : first == 252 ? 2 : first == 253 ? 3 : 8;
  if (from->size() <= more) return std::nullopt;
  uint64_t length = more == 0 ? first : 0;
  for (size_t i = more; i > 0; --i) length = length << 8 | byte(i);
  from->remove_prefix(1 + more);
  if (length > from->size()) return std::nullopt;
  const std::string_view text = from->substr(0, length);
  from->remove_prefix(length);
  return text;
}

/** @param name  in a character set that contains ASCII, as the client's is
@return the part of the attributes that is the name and the value of that name,
both with their lengths; empty: there is none before the first that is damaged
*/
inline std::optional<std::string_view> find_attribute(
    std::string_view attributes, std::string_view name) {
  while (true) {
    std::string_view rest = attributes;
    const auto key = take_encoded(&rest);
    if (!key || key->empty() || !take_encoded(&rest)) return std::nullopt;
    if (*key == name)
      return attributes.substr(0, attributes.size() - rest.size());
    attributes = rest;
  }
}

}  // namespace memdiag

#endif  // MEMDIAG_CONNECT_ATTRIBUTES_H
