-- Debian's own server expects this account in a data directory that it takes over. It
-- is the system's root's, like root@localhost.
CREATE USER 'debian-sys-maint'@'localhost' IDENTIFIED WITH auth_socket AS 'root';
GRANT ALL ON *.* TO 'debian-sys-maint'@'localhost' WITH GRANT OPTION;
