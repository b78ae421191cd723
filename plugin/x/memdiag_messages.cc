/*
  Below the ceiling, a large message of the X protocol waits before it is read,
  and between its parts while memory is short. What it took goes back when it
  was answered.

  No file of the plugin is patched. The linker redirects these calls to this
  file (--wrap, in cmake/upstream/product.cmake):
  - Protocol_decoder::read_and_decode(), which reads a message and answers it.
  - Message_cache::alloc_message(). The cache keeps the objects of a session's
    messages, each as large as its largest message, as long as the session.
  - MessageLite::ParseFromCodedStream(), which makes objects of what it reads. A
    compressed frame has several messages, and each is parsed by one call.

  Instead of a message that waited in vain, a statement is executed that gets
  error 3170. So the connection goes on, and a block of expectations sees the
  error. The bytes of the message are read and forgotten. A message of a client
  that connects gets the error and ends its connection, as all errors of the
  decoder do.

  While a session waits for its next message, upstream looks twice a second
  whether it was killed, so the socket has no long wait (idle_hooks.h). The
  thread gives back what that header names at such a look.

  While a large message is read, its client may stand still for
  mysqlx_read_timeout, also without a ceiling. Upstream may give up after half a
  second (Timeouts).

  Threads: the one that serves the client. Errors: as the replaced functions.
*/

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/message_lite.h>
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "mysqld_error.h"
#include "mysys/memdiag/upstream/idle_hooks.h"
#include "mysys/memdiag/upstream/message_hooks.h"
#include "plugin/x/src/interface/waiting_for_io.h"
#include "plugin/x/src/ngs/message_cache.h"
#include "plugin/x/src/ngs/protocol/protocol_protobuf.h"
#include "plugin/x/src/ngs/protocol_decoder.h"

using Error = ngs::Protocol_decoder::Decode_error;
using google::protobuf::MessageLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::ZeroCopyInputStream;

Error read_and_decode_of_plugin(ngs::Protocol_decoder *decoder, xpl::iface::Waiting_for_io *idle) asm(
    "__real__ZN3ngs16Protocol_decoder15read_and_decodeEPN3xpl5iface"
    "14Waiting_for_ioE");
bool alloc_message_of_plugin(ngs::Message_cache *cache, uint8_t type, ngs::Message_request *request) asm(
    "__real__ZN3ngs13Message_cache13alloc_messageEhPNS_"
    "15Message_requestE");
bool parse_of_library(MessageLite *message, CodedInputStream *stream) asm(
    "__real__ZN6google8protobuf11MessageLite20ParseFromCoded"
    "StreamEPNS0_2io16CodedInputStreamE");

Error read_and_decode_here(ngs::Protocol_decoder *decoder, xpl::iface::Waiting_for_io *idle) asm(
    "__wrap__ZN3ngs16Protocol_decoder15read_and_decodeEPN3xpl5iface"
    "14Waiting_for_ioE");
bool alloc_message_here(ngs::Message_cache *cache, uint8_t type, ngs::Message_request *request) asm(
    "__wrap__ZN3ngs13Message_cache13alloc_messageEhPNS_"
    "15Message_requestE");
bool parse_here(MessageLite *message, CodedInputStream *stream) asm(
    "__wrap__ZN6google8protobuf11MessageLite20ParseFromCoded"
    "StreamEPNS0_2io16CodedInputStreamE");

namespace {

/** Where the head of a message and its begin came together, upstream waits for
the next bytes for half a second, and not for mysqlx_read_timeout. A client that
stood still while its message waited may need longer to go on.
The members are private. Names of such may stand in an explicit instantiation,
which defines the friend. */
template <auto vio, auto read_timeout>
struct Timeouts {
  friend void lengthen_timeout(ngs::Protocol_decoder *decoder) {
    (decoder->*vio)
        ->set_timeout_in_ms(xpl::iface::Vio::Direction::k_read,
                            decoder->*read_timeout);
  }
};
void lengthen_timeout(ngs::Protocol_decoder *decoder);
template struct Timeouts<&ngs::Protocol_decoder::m_vio,
                         &ngs::Protocol_decoder::m_read_timeout_in_ms>;

/** Upstream asks it twice a second while it waits for a message. It passes the
question on to upstream's own object, and knows when the client is idle. */
class Idle_client : public xpl::iface::Waiting_for_io {
 public:
  explicit Idle_client(Waiting_for_io *of_plugin) : m_of_plugin(of_plugin) {}
  bool has_to_report_idle_waiting() override {
    return m_of_plugin->has_to_report_idle_waiting();
  }
  bool on_idle_or_before_read() override {
    if (memdiag_client_is_idle != nullptr) look();
    return m_of_plugin->on_idle_or_before_read();
  }
  void is_back() { m_idle.is_back(); }

 private:
  void look() {
    if (!m_idle) {
      if (std::chrono::steady_clock::now() - m_since >=
          std::chrono::seconds(memdiag::idle_seconds))
        m_idle.begin();
      return;
    }
    pollfd bell{m_idle.bell(), POLLIN, 0};
    if (bell.fd >= 0 && poll(&bell, 1, 0) > 0) m_idle.call_again();
  }

  Waiting_for_io *const m_of_plugin;
  const std::chrono::steady_clock::time_point m_since{
      std::chrono::steady_clock::now()};
  memdiag::Idle m_idle;
};

/** The message that the calling thread reads. */
struct Reading {
  Idle_client *client;
  ngs::Protocol_decoder *decoder;
  ngs::Message_cache *cache;
  ngs::Message_request *request;
  int size;
  bool is_refused;
  bool ends_connection;
};
constinit thread_local Reading reading{};

/** A client may send it before its account is known. */
bool connects(const ngs::Message_request &request) {
  return request.get_message_type() <= Mysqlx::ClientMessages::SESS_CLOSE;
}

constexpr char refusal[] =
    "memdiag_memory_target: there was no memory for this message of the "
    "client. It was not read.";

/** Instead of a message of the calling thread. */
Mysqlx::Sql::StmtExecute &refusing_statement() {
  thread_local Mysqlx::Sql::StmtExecute statement;
  if (!statement.has_stmt())
    statement.set_stmt("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = " +
                       std::to_string(ER_CAPACITY_EXCEEDED) +
                       ", MESSAGE_TEXT = '" + refusal + "'");
  return statement;
}

/** A message's part of a stream. Its end is the end of the message, or the
refusal. */
class Parts : public ZeroCopyInputStream {
 public:
  explicit Parts(CodedInputStream *whole) : m_whole(whole) {}
  ~Parts() override { take_given(); }
  Parts(const Parts &) = delete;
  Parts &operator=(const Parts &) = delete;

  bool Next(const void **data, int *size) override {
    take_given();
    reading.is_refused = reading.is_refused || !memdiag_message_goes_on();
    return !reading.is_refused && take(data, size);
  }
  /** Reads the rest, and forgets it. */
  void drop() {
    const void *data;
    int size;
    do take_given();
    while (take(&data, &size));
  }
  void BackUp(int count) override { m_given -= count; }
  bool Skip(int count) override {
    take_given();
    m_bytes += count;
    return m_whole->Skip(count);
  }
  int64_t ByteCount() const override { return m_bytes + m_given; }

 private:
  bool take(const void **data, int *size) {
    if (!m_whole->GetDirectBufferPointer(data, size)) return false;
    m_given = *size;
    return true;
  }
  void take_given() {
    m_whole->Skip(m_given);
    m_bytes += std::exchange(m_given, 0);
  }

  CodedInputStream *const m_whole;
  int64_t m_bytes{0};
  /** The last bytes that Next() gave. */
  int m_given{0};
};

/** The message of the stream's rest must not be read.
@return true: a statement is executed in its stead */
bool replace(MessageLite *message, Parts *parts) {
  reading.ends_connection = connects(*reading.request);
  if (reading.ends_connection) return false;
  message->Clear();
  parts->drop();
  reading.request->reset(Mysqlx::ClientMessages::SQL_STMT_EXECUTE,
                         &refusing_statement());
  return true;
}

void ended() {
  const int size = std::exchange(reading.size, 0);
  if (size <= memdiag::small_message) return;
  if (size > memdiag::kept_message) {
    std::destroy_at(reading.cache);
    std::construct_at(reading.cache);
  }
  memdiag_message_ended();
}

}  // namespace

Error read_and_decode_here(ngs::Protocol_decoder *decoder,
                           xpl::iface::Waiting_for_io *idle) {
  Idle_client client(idle);
  reading = {.client = &client, .decoder = decoder};
  // Without memory, protobuf throws.
  const struct At_end {
    ~At_end() { ended(); }
  } at_end;
  Error error = read_and_decode_of_plugin(decoder, &client);
  if (!reading.ends_connection) return error;
  return Error{ngs::Error_code{ER_CAPACITY_EXCEEDED, refusal}};
}

bool alloc_message_here(ngs::Message_cache *cache, uint8_t type,
                        ngs::Message_request *request) {
  reading.client->is_back();
  // A compressed frame goes on with its next message.
  ended();
  reading = {.client = reading.client,
             .decoder = reading.decoder,
             .cache = cache,
             .request = request};
  return alloc_message_of_plugin(cache, type, request);
}

bool parse_here(MessageLite *message, CodedInputStream *stream) {
  const int size = stream->BytesUntilLimit();
  if (memdiag_message_comes == nullptr || reading.cache == nullptr ||
      size <= memdiag::small_message)
    return parse_of_library(message, stream);
  reading.size = size;
  reading.is_refused = !memdiag_message_comes(size, connects(*reading.request));
  if (!connects(*reading.request)) lengthen_timeout(reading.decoder);
  Parts parts(stream);
  if (reading.is_refused) return replace(message, &parts);
  bool is_read;
  {
    CodedInputStream whole(&parts);
    whole.SetRecursionLimit(stream->RecursionBudget());
    is_read = parse_of_library(message, &whole);
  }
  // Where the message was cut, the part before may be a whole one.
  return reading.is_refused ? replace(message, &parts) : is_read;
}
