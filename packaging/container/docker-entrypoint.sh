#!/bin/bash
# Entry point of the image: makes a data directory where there is none, then becomes mysqld.
#
# The variables are those of the official image: docs/container-image.md. This script sources hooks
# that are not executable. They may use its functions, so it is bash, and without `set -u`.
#
# The script makes the new data directory in a folder of its own in the volume, with accounts, time
# zones and the work of hooks, and moves it when it is complete. Whatever ends the script, the next
# start finds either all or nothing, and removes nothing but what the script has made.
set -eo pipefail
# PID 1 ignores a signal for which it has no trap, and bash forgets traps when it becomes mysqld.
trap 'exit 143' TERM INT

# Files for this run alone. With a read-only root file system, this is a tmpfs. The health check
# looks here.
state=/run/mysqld
hooks=/docker-entrypoint-initdb.d

say() { # kind, words
  printf '%s [%s] [Entrypoint]: %s\n' "$(date --rfc-3339=seconds)" "$1" "${*:2}" >&2
}

mysql_note() { say Note "$@"; }
mysql_warn() { say Warn "$@"; }
mysql_error() {
  say ERROR "$@"
  exit 1
}

# --- settings ----------------------------------------------------------------------------

only_asks() { # arguments of mysqld: true if it would answer and end
  local word
  for word; do
    case $word in
    -\? | --help | -V | --version | --print-defaults | --validate-config | --initialize*) return 0 ;;
    esac
  done
  return 1
}

from_files() { # names: NAME_FILE names a file with the value of NAME
  local name file
  for name; do
    file=${name}_FILE
    [ -n "${!file}" ] || continue
    [ -z "${!name}" ] || mysql_error "$name and $file are both set. Set one of them."
    [ -r "${!file}" ] || mysql_error "$file names ${!file}, which cannot be read."
    export "$name=$(<"${!file}")"
    unset "$file"
  done
}

# The settings as the server sees them: files, arguments and defaults together.
read_settings() { # mysqld and its arguments
  settings=$("$@" --verbose --help 2>&1) ||
    mysql_error "mysqld refuses its settings: $(grep -F '[ERROR]' <(echo "$settings") || echo "$settings")"
  datadir=$(setting datadir) socket=$(setting socket)
  datadir=${datadir%/}
}

# Settings may name files below the data directory by their whole path. Their values relative to it, as options.
# --initialize loads no plugin, and would not know the options of one without "loose".
relative() {
  printf '%s\n' "$settings" | awk -v top="$datadir" '
    /^[a-z][a-z0-9-]* +\// && $1 !~ /^(datadir|basedir|socket|tmpdir|pid-file)$/ {
      name = $1; value = $0
      sub(/^[^ ]+ +/, "", value)
      if (index(value "/", top "/") == 1) print "--loose-" name "=." substr(value, length(top) + 1)
    }'
}

setting() { # name; indented lines are the help's sentences
  printf '%s\n' "$settings" | sed -n "s/^$1  *//p"
}

require_writable() { # folder, what to do
  [ -w "$1/." ] || mysql_error "user $(id -u) cannot write to $1. $2"
}

# namei lists each step of a path, with links and the folders that they lead to.
trusted() { # path: true if root alone can change where it leads
  namei -mo "$1" | awk 'NR > 1 && ($2 != "root" || /^ *d(....|.......)w/) { exit 1 }'
}

# A new volume belongs to root. Root makes and gives away a folder only where no other user can change
# its path. Elsewhere user mysql makes it.
leave_root() { # mysqld and its arguments
  local folder there as_mysql=(setpriv --reuid=mysql --regid=mysql --init-groups)
  for folder in "$datadir" "$state"; do
    there=$(dirname "$folder")
    while [ ! -e "$there" ]; do there=$(dirname "$there"); done
    if trusted "$there"; then
      mkdir -p "$folder"
      [ "$(stat -c %u "$folder")" != 0 ] || chown --no-dereference mysql:mysql "$folder"
    else
      [ -e "$folder" ] || "${as_mysql[@]}" mkdir -p "$folder" || :
      "${as_mysql[@]}" test -w "$folder/." ||
        mysql_error "user mysql cannot make $folder, or write to it. Make it, with owner $(id -u mysql)."
    fi
  done
  exec "${as_mysql[@]}" "$0" "$@"
}

check_environment() {
  [ -n "$MYSQL_ROOT_PASSWORD$MYSQL_ALLOW_EMPTY_PASSWORD$MYSQL_RANDOM_ROOT_PASSWORD" ] ||
    mysql_error "there is no data directory in $datadir. To make one, this image must know which password root" \
      "gets. Set MYSQL_ROOT_PASSWORD, MYSQL_ROOT_PASSWORD_FILE, MYSQL_RANDOM_ROOT_PASSWORD or" \
      "MYSQL_ALLOW_EMPTY_PASSWORD."
  [ "$MYSQL_USER" != root ] ||
    mysql_error "MYSQL_USER cannot be root, whose password is MYSQL_ROOT_PASSWORD. Choose another name."
  [ -z "$MYSQL_USER" ] || [ -n "$MYSQL_PASSWORD" ] ||
    mysql_warn "MYSQL_USER is set without MYSQL_PASSWORD: no such account is made."
  [ -n "$MYSQL_USER" ] || [ -z "$MYSQL_PASSWORD" ] ||
    mysql_warn "MYSQL_PASSWORD is set without MYSQL_USER: it is not used."
  ls "$hooks" >/dev/null || mysql_error "user $(id -u) cannot list $hooks."
}

# --- SQL ---------------------------------------------------------------------------------

# Sessions with the literals of text() begin with this: it makes the backslash an ordinary character.
plain="SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES';"

text() { # value
  printf "'%s'" "${1//\'/\'\'}"
}

name() { # identifier
  # shellcheck disable=SC2016
  printf '`%s`' "${1//\`/\`\`}"
}

pattern() { # database; in a GRANT, _ and % are wildcards
  name "$(printf '%s' "$1" | sed 's/[_%\\]/\\&/g')"
}

random() { # number of characters
  tr -dc A-Za-z0-9 </dev/urandom 2>/dev/null | head -c "$1" || :
}

# Hooks call it, too. SQL comes from stdin; the arguments are options of mysql.
docker_process_sql() {
  [ "$1" != --dont-use-mysql-root-password ] || shift
  # A mounted [client] may name another server's host.
  mysql --defaults-extra-file="$private/root.cnf" --host=localhost --protocol=socket --socket="$socket" \
    --comments ${database:+"--database=$database"} "$@"
}

# --- a new data directory -----------------------------------------------------------------

# Not in the binary log. The server listens nowhere while it runs this, so no account is ever open.
accounts() {
  local root
  root=$(text "$MYSQL_ROOT_PASSWORD")
  echo "$plain"
  echo "SET SESSION sql_log_bin = 0;"
  echo "ALTER USER root@localhost IDENTIFIED BY $root;"
  if [ "$MYSQL_ROOT_HOST" != localhost ]; then
    echo "CREATE USER root@$(text "$MYSQL_ROOT_HOST") IDENTIFIED BY $root;"
    echo "GRANT ALL ON *.* TO root@$(text "$MYSQL_ROOT_HOST") WITH GRANT OPTION;"
  fi
  echo "CREATE USER healthcheck@localhost IDENTIFIED BY '$1' PASSWORD EXPIRE NEVER;"
}

asked_for() {
  echo "$plain"
  if [ -n "$MYSQL_DATABASE" ]; then
    echo "CREATE DATABASE IF NOT EXISTS $(name "$MYSQL_DATABASE");"
  fi
  if [ -n "$MYSQL_USER" ] && [ -n "$MYSQL_PASSWORD" ]; then
    echo "CREATE USER $(text "$MYSQL_USER")@'%' IDENTIFIED BY $(text "$MYSQL_PASSWORD");"
    if [ -n "$MYSQL_DATABASE" ]; then
      echo "GRANT ALL ON $(pattern "$MYSQL_DATABASE").* TO $(text "$MYSQL_USER")@'%';"
    fi
  fi
}

time_zones() {
  echo "SET SESSION sql_log_bin = 0;"
  mysql_tzinfo_to_sql /usr/share/zoneinfo 2>/dev/null
}

# The session's own account comes last: once expired, it can do nothing more.
one_time() {
  echo "$plain"
  echo "SET SESSION sql_log_bin = 0;"
  if [ "$MYSQL_ROOT_HOST" != localhost ]; then
    echo "ALTER USER root@$(text "$MYSQL_ROOT_HOST") PASSWORD EXPIRE;"
  fi
  echo "ALTER USER root@localhost PASSWORD EXPIRE;"
}

run_hooks() {
  local hook
  for hook in "$hooks"/*; do
    case $hook in
    *.sh)
      if [ -x "$hook" ]; then
        mysql_note "running $hook"
        "$hook"
      else
        mysql_note "sourcing $hook"
        # shellcheck source=/dev/null
        . "$hook"
      fi
      ;;
    *.sql) load "$hook" cat ;;
    *.sql.gz) load "$hook" gzip -dc ;;
    *.sql.bz2) load "$hook" bzip2 -dc ;;
    *.sql.xz) load "$hook" xz -dc ;;
    *.sql.zst) load "$hook" zstd -dc ;;
    "$hooks/*") ;; # there is none
    *) mysql_warn "ignoring $hook" ;;
    esac
  done
}

load() { # hook, words of the program that reads it
  mysql_note "running $1"
  "${@:2}" "$1" | docker_process_sql
}

start_server() { # mysqld and its arguments; sets $server
  mysql_note "Starting temporary server"
  # Only local clients reach it. Settings that would keep it from writing accounts are off.
  "$@" --datadir="$making" --skip-networking --loose-mysqlx=OFF --default-time-zone=SYSTEM \
    --read-only=OFF --super-read-only=OFF --skip-replica-start \
    --loose-group-replication-start-on-boot=OFF &
  server=$!
  local said
  until said=$(docker_process_sql -e 'DO 0' 2>&1); do
    kill -0 "$server" 2>/dev/null || mysql_error "the server ended while starting; its messages are above."
    case $said in
    # Not yet. A warning of the client may stand before it.
    *"ERROR 2002 ("* | *"ERROR 2003 ("* | *"ERROR 2013 ("*) sleep 0.1 ;;
    *) mysql_error "root cannot log in: $said" ;;
    esac
  done
}

stop_server() {
  mysql_note "Stopping temporary server"
  kill -TERM "$server"
  wait "$server" || mysql_error "the server did not end in good order; its messages are above."
}

initialise() { # mysqld and its arguments
  local health database='' moved
  mapfile -t moved < <(relative)
  set -- "$@" "${moved[@]}"
  set +m # the server and the hooks stay in this process group
  unset MYSQL_HOST # a hook's mysql asks this server
  private=$(mktemp -d "$state/init.XXXXXX")
  trap 'rm -rf "$private"' EXIT
  rm -rf "$making"
  mkdir -m 0700 "$making"

  health=$(random 32)
  if [ -n "$MYSQL_RANDOM_ROOT_PASSWORD" ]; then
    MYSQL_ROOT_PASSWORD=$(random 32)
    export MYSQL_ROOT_PASSWORD
    mysql_note "GENERATED ROOT PASSWORD: $MYSQL_ROOT_PASSWORD"
  fi
  (umask 077 && accounts "$health" >"$private/accounts.sql")
  (umask 077 && printf '[client]\nuser=root\npassword="%s"\n' \
    "$(printf '%s' "$MYSQL_ROOT_PASSWORD" | sed 's/["\\]/\\&/g')" >"$private/root.cnf")

  mysql_note "Initializing database files"
  "$@" --initialize-insecure --datadir="$making" --default-time-zone=SYSTEM \
    --init-file="$private/accounts.sql"
  (umask 077 && printf '[client]\nuser=healthcheck\npassword=%s\n' "$health" >"$making/$health_file")

  start_server "$@"
  if [ -z "$MYSQL_INITDB_SKIP_TZINFO" ]; then
    time_zones | docker_process_sql --database=mysql
  fi
  asked_for | docker_process_sql
  database=$MYSQL_DATABASE # from now on it exists
  run_hooks
  if [ -n "$MYSQL_ONETIME_PASSWORD" ]; then
    one_time | docker_process_sql
  fi
  stop_server
  sync -f "$making"
  mv -T "$making" "$made"
  mysql_note "MySQL init process done. Ready for start up."
}

# A worker that failed may have left its server running.
end_group() { # process group
  kill -TERM -- "-$1" 2>/dev/null || return 0
  for _ in {1..300}; do
    kill -0 -- "-$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL -- "-$1" || :
}

# bash runs a trap only between commands. So another process group does the work, and this shell waits.
make_data_directory() { # mysqld and its arguments
  local worker
  [ -z "$(find "$datadir" -mindepth 1 -maxdepth 1 ! -name '.*' ! -name lost+found ! -path "$making" \
    ! -path "$socket" ! -path "$socket.lock" -print -quit)" ] ||
    mysql_error "$datadir is not empty and has no system tables: it is no data directory." \
      "Empty it, or give an empty volume, and start again."
  check_environment
  set -m
  initialise "$@" </dev/null &
  worker=$!
  set +m
  trap 'mysql_warn "ended while making a data directory; the next start begins anew."
    kill -TERM -- "-$worker" && wait "$worker"; exit 143' TERM INT
  wait "$worker" || {
    end_group "$worker"
    rm -rf "$making"
    mysql_error "no data directory was made; the reason is above. The next start begins anew."
  }
  trap 'exit 143' TERM INT
}

# --- main ---------------------------------------------------------------------------------

case $1 in
-*) set -- mysqld "$@" ;;
esac

if [ "$1" = mysqld ] && ! only_asks "$@"; then
  read_settings "$@"
  # As the first user: only root may be able to read a secret. The file may be gone when there are data.
  [ -e "$datadir/mysql" ] ||
    from_files MYSQL_ROOT_HOST MYSQL_ROOT_PASSWORD MYSQL_DATABASE MYSQL_USER MYSQL_PASSWORD
  : "${MYSQL_ROOT_HOST:=%}"
  [ "$(id -u)" != 0 ] || leave_root "$@"

  owner="chown $(id -u):$(id -g)"
  require_writable "$state" "Mount a tmpfs there that all users can write to."
  require_writable "$(setting tmpdir | cut -d: -f1)" "Mount a tmpfs there that all users can write to."
  require_writable "$datadir" "Give it the volume ($owner; Kubernetes: fsGroup: $(id -g)), or start it as root."
  rm -rf "$state"/health.cnf "$state"/init.*

  making=$datadir/memdiag-making made=$datadir/memdiag-made # as the packages' make-data
  health_file=.healthcheck.cnf lock=''
  if [ ! -e "$datadir/mysql" ]; then
    # Another container may have the same volume. NFS refuses such a lock of a folder, and then there is none.
    exec {lock}<"$datadir"
    flock -n -E 75 "$lock" 2>/dev/null || [ $? != 75 ] ||
      mysql_error "another container is making a data directory in $datadir. Give each a volume of its own."
    [ -e "$made" ] || make_data_directory "$@"
    /usr/libexec/mysql-memdiag/make-data "$datadir" # moves what is in $made
  fi
  # A run that was ended left these, and then somebody restored data. InnoDB would read the files.
  rm -rf "$making" "$made"
  [ -z "$lock" ] || exec {lock}<&-
  if [ -n "$MYSQL_INITIALIZE_ONLY" ]; then
    mysql_note "There is a data directory, and MYSQL_INITIALIZE_ONLY asks for no more."
    exit
  fi

  # From now on the health check works. A data directory from elsewhere lacks the file and the account.
  (umask 077 && {
    cat "$datadir/$health_file" 2>/dev/null || printf '[client]\nuser=healthcheck\n'
    printf '\nsocket="%s"\n' "$socket"
  } >"$state/health.cnf")
  unset MYSQL_ROOT_PASSWORD MYSQL_PASSWORD
fi
exec "$@"
