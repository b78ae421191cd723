#include "plugin/memdiag/profile_export/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace memdiag::profile {

std::string gzip(std::string_view bytes) {
  // 16: with gzip's header and not zlib's own.
  constexpr int window_bits = 15 + 16;
  constexpr int default_memory_level = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits,
                   default_memory_level, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  struct End {
    z_stream *stream;
    ~End() { (void)deflateEnd(stream); }
  } const end{&stream};

  std::string packed;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      // Its counters have 32 bits.
      const size_t count = std::min<size_t>(bytes.size(), 1 << 30);
      stream.next_in =
          reinterpret_cast<Bytef *>(const_cast<char *>(bytes.data()));
      stream.avail_in = static_cast<uInt>(count);
      bytes.remove_prefix(count);
    }
    const size_t before = packed.size();
    constexpr size_t piece = 65536;
    packed.resize(before + piece);
    stream.next_out = reinterpret_cast<Bytef *>(packed.data() + before);
    stream.avail_out = piece;
    state = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    packed.resize(packed.size() - stream.avail_out);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      throw std::bad_alloc();
  }
  return packed;
}

std::string base64(std::string_view bytes) {
  constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t at) {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0u;
    };
    const unsigned three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    text += digits[three >> 18];
    text += digits[three >> 12 & 63];
    text += i + 1 < bytes.size() ? digits[three >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? digits[three & 63] : '=';
  }
  return text;
}

}  // namespace memdiag::profile
