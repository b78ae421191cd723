/*
  The X plugin writes the text of each statement into one of three buffers of
  its session, which would stay as large as the session's largest text. A large
  buffer goes back when the message was answered.

  The linker redirects the plugin's calls of Dispatcher::execute() to this file
  (--wrap, in cmake/upstream/product.cmake). It executes a message of a session
  that has logged in.

  Threads: the one that serves the client. Errors: as the replaced function.
*/

#include <cstddef>

#include "mysys/memdiag/upstream/message_hooks.h"
#include "plugin/x/src/xpl_dispatcher.h"

using xpl::Crud_command_handler;
using xpl::Dispatcher;
using xpl::Prepare_command_handler;
using xpl::Query_string_builder;
using xpl::Stmt_command_handler;

ngs::Error_code
execute_of_plugin(Dispatcher *dispatcher, const ngs::Message_request &command) asm(
    "__real__ZN3xpl10Dispatcher7executeERKN3ngs15Message_"
    "requestE");
ngs::Error_code
execute_here(Dispatcher *dispatcher, const ngs::Message_request &command) asm(
    "__wrap__ZN3xpl10Dispatcher7executeERKN3ngs15Message_"
    "requestE");

namespace {

constexpr size_t reserved_at_first = 1024;

/** The buffers are private. Names of private members may stand in an explicit
instantiation, which defines the friend. */
template <auto handler, auto buffer>
struct Buffer {
  friend Query_string_builder &buffer_of(Dispatcher *dispatcher,
                                         decltype(buffer)) {
    return dispatcher->*handler.*buffer;
  }
};
Query_string_builder &buffer_of(Dispatcher *,
                                Query_string_builder Crud_command_handler::*);
Query_string_builder &buffer_of(Dispatcher *,
                                Query_string_builder Stmt_command_handler::*);
Query_string_builder &buffer_of(
    Dispatcher *, Query_string_builder Prepare_command_handler::*);
template struct Buffer<&Dispatcher::m_crud_handler,
                       &Crud_command_handler::m_qb>;
template struct Buffer<&Dispatcher::m_stmt_handler,
                       &Stmt_command_handler::m_qb>;
template struct Buffer<&Dispatcher::m_prepare_handler,
                       &Prepare_command_handler::m_qb>;

template <typename Handler>
void give_back(Dispatcher *dispatcher) {
  constexpr Query_string_builder Handler::*of_handler = nullptr;
  Query_string_builder &text = buffer_of(dispatcher, of_handler);
  if (text.get().capacity() > memdiag::kept_message)
    text = Query_string_builder(reserved_at_first);
}

}  // namespace

ngs::Error_code execute_here(Dispatcher *dispatcher,
                             const ngs::Message_request &command) {
  ngs::Error_code error = execute_of_plugin(dispatcher, command);
  give_back<Crud_command_handler>(dispatcher);
  give_back<Stmt_command_handler>(dispatcher);
  give_back<Prepare_command_handler>(dispatcher);
  return error;
}
