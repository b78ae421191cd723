-- Debian's own server expects this account in a data directory that it takes over. Like
-- root@localhost, it belongs to the system's root.
CREATE USER 'debian-sys-maint'@'localhost' IDENTIFIED WITH auth_socket AS 'root';
GRANT ALL ON *.* TO 'debian-sys-maint'@'localhost' WITH GRANT OPTION;
