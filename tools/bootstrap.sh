# shellcheck shell=sh
# Installs the Debian packages that run-tests and run-demo need, on a Debian 12 machine
# that has nothing but git. Both source this file and call memdiag_bootstrap. It is plain
# sh because there may be no python3 yet. It installs only missing packages, and prints
# their names first.

# The purpose of each group:
#   fetching       ca-certificates xz-utils; gpgv for the signature of upstream's tarball
#   tools          python3 patch perl git; python3-pymysql for sessions with a server;
#                  python3-jinja2 and python3-rich for the program memdiag (client/);
#                  python3-venv for ruff and clang-format (tools/style.py); python3-pip,
#                  python3-setuptools and python3-wheel for memdiag's wheel (packaging/build-client);
#                  python3-pip for what monitoring/sink.py decodes with; pipx installs that wheel, too
#   compiling      gcc g++ make cmake ninja-build bison pkg-config ccache mold
#   jemalloc       autoconf
#   upstream       the -dev packages; from libtirpc on for plugins in `all`
#   unit tests     libgtest-dev
#   mysql-test     libjson-perl and the perl modules of the perl package; procps for ps
#   style          shellcheck
#   packages       debhelper dpkg-dev rpm
#   memdiag        chromium shows its reports, tmux its screen; valgrind is the other profiler that
#                  ours is compared with
MEMDIAG_PACKAGES="ca-certificates xz-utils gpgv
python3 python3-pymysql python3-jinja2 python3-rich python3-venv patch perl git
python3-pip python3-setuptools python3-wheel pipx
gcc g++ make cmake ninja-build bison pkg-config ccache mold
autoconf
libssl-dev libicu-dev liblz4-dev libzstd-dev zlib1g-dev libedit-dev
libprotobuf-dev libprotoc-dev protobuf-compiler libncurses-dev libaio-dev
libnuma-dev libtirpc-dev libcurl4-openssl-dev libsasl2-dev libldap-dev libkrb5-dev
libfido2-dev libmecab-dev
libgtest-dev
libjson-perl procps
shellcheck
debhelper dpkg-dev rpm
chromium tmux valgrind"

memdiag_missing_packages() {
  for package in $MEMDIAG_PACKAGES; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
    case $status in installed*) ;; *) printf '%s ' "$package" ;; esac
  done
}

memdiag_bootstrap() {
  if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    echo "error: this is not Debian (it has no dpkg and apt-get)." >&2
    echo "  Use Debian 12, for example in a container. tools/bootstrap.sh lists the" >&2
    echo "  packages that a build by hand needs." >&2
    return 1
  fi
  missing=$(memdiag_missing_packages)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "error: these Debian packages are missing, and only root can install them:" >&2
    echo "  $missing" >&2
    echo "  Run this as root:  apt-get update && apt-get install $missing" >&2
    return 1
  fi
  echo "-- installing these Debian packages (one to three minutes): $missing"
  # apt-get update downloads lists, so it runs only where they are missing or too old: the archive no longer
  # has what old ones name. The second try says what is wrong if that was not the reason.
  memdiag_apt_install 2>/dev/null || {
    apt-get -q update </dev/null || true # one of several archives may be gone
    memdiag_apt_install
  } || {
    echo "error: apt-get could not install them (its message is above)." >&2
    echo "  Check the network and /etc/apt, and run the same command again." >&2
    return 1
  }
}

memdiag_apt_install() {
  # $missing is a list of package names, which the shell splits.
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $missing </dev/null
}
