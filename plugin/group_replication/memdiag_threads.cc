/*
  Binds the threads of group replication to the pool group_replication. The pool
  then holds what they allocate without a memory key: XCom's cache of messages,
  the transactions in the certification database, packets in queues.

  No file of the plugin is patched. The linker redirects these calls of the
  plugin's own code to this file (--wrap, in cmake/upstream/product.cmake):
  - my_thread_init(), the first call of most of the plugin's threads.
  - xcom_taskmain2(), all that XCom's own thread does. That thread never calls
    my_thread_init().
  - malloc(), calloc() and free(). A session allocates its message, and XCom's
    thread frees it. From then on that thread's cache would hand out the
    session's blocks for XCom's cache of messages, which keeps them for long.
  The server's own calls stay as they are. Operator new is not redirected: its
  blocks are freed by the thread that made them.

  Threads: each thread of the plugin binds itself. Errors: as the replaced
  functions.
*/

#include <cerrno>

#include "mysys/memdiag/upstream/thread_hooks.h"

bool my_thread_init_of_server() asm("__real__Z14my_thread_initv");
int xcom_taskmain2_of_plugin(unsigned short port) asm(
    "__real__Z14xcom_taskmain2t");
void *malloc_of_server(size_t size) asm("__real_malloc");
void *calloc_of_server(size_t count, size_t size) asm("__real_calloc");
void free_of_server(void *block) asm("__real_free");

bool my_thread_init_here() asm("__wrap__Z14my_thread_initv");
int xcom_taskmain2_here(unsigned short port) asm("__wrap__Z14xcom_taskmain2t");
void *malloc_here(size_t size) asm("__wrap_malloc");
void *calloc_here(size_t count, size_t size) asm("__wrap_calloc");
void free_here(void *block) asm("__wrap_free");

bool my_thread_init_here() {
  memdiag::group_replication_thread();
  return my_thread_init_of_server();
}

int xcom_taskmain2_here(unsigned short port) {
  memdiag::group_replication_thread();
  return xcom_taskmain2_of_plugin(port);
}

void *malloc_here(size_t size) {
  return memdiag_group_replication_allocate != nullptr
             ? memdiag_group_replication_allocate(size, false)
             : malloc_of_server(size);
}

void *calloc_here(size_t count, size_t size) {
  if (memdiag_group_replication_allocate == nullptr)
    return calloc_of_server(count, size);
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return memdiag_group_replication_allocate(bytes, true);
}

void free_here(void *block) {
  if (memdiag_group_replication_free != nullptr)
    memdiag_group_replication_free(block);
  else
    free_of_server(block);
}
