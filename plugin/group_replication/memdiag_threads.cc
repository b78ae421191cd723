/*
  Binds the threads of group replication to the pool group_replication, so that
  what they take without a memory key is found there: XCom's cache of messages,
  the transactions in the certification database, packets in queues.

  No file of the plugin is patched. The linker leads the plugin's calls of two
  functions here (--wrap, in cmake/upstream/product.cmake):
  - my_thread_init(), the first call of most of the plugin's threads;
  - xcom_taskmain2(), all that XCom's own thread does. That thread never calls
    my_thread_init().
  The server's own calls of my_thread_init() stay as they are.

  Threads: each of the plugin's calls this once for itself.
*/

#include "mysys/memdiag/routes/thread_hooks.h"

bool my_thread_init_of_server() asm("__real__Z14my_thread_initv");
int xcom_taskmain2_of_plugin(unsigned short port) asm(
    "__real__Z14xcom_taskmain2t");

bool my_thread_init_here() asm("__wrap__Z14my_thread_initv");
int xcom_taskmain2_here(unsigned short port) asm("__wrap__Z14xcom_taskmain2t");

bool my_thread_init_here() {
  memdiag::group_replication_thread();
  return my_thread_init_of_server();
}

int xcom_taskmain2_here(unsigned short port) {
  memdiag::group_replication_thread();
  return xcom_taskmain2_of_plugin(port);
}
