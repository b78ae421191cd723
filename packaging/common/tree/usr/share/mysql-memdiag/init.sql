-- In no binary log: a stock replica may lack the plugin.
SET sql_log_bin = 0;
INSTALL PLUGIN auth_socket SONAME 'auth_socket.so';
ALTER USER root@localhost IDENTIFIED WITH auth_socket;
