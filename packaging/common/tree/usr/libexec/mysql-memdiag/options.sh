# shellcheck shell=sh
# To be sourced: finds the options with which mysqld will start. `instance` is that of
# mysqld@.service, or empty. It reads mysqld's sections: [mysqld], [server] and [mysqld-9.7].
# shellcheck source=packaging/deb/family.sh
. /usr/libexec/mysql-memdiag/family.sh # sysconfig, datadir_mode

# The units pass these two variables on. A script that is run by hand reads them here.
sysconfig_value() { # name
  sed -n "s/^$1=//p" "$sysconfig" 2>/dev/null | tail -n 1 | sed "s/^\([\"']\)\(.*\)\1\$/\2/"
}
if [ -n "$sysconfig" ]; then
  MYSQLD_OPTS=${MYSQLD_OPTS-$(sysconfig_value MYSQLD_OPTS)}
  NO_INIT=${NO_INIT-$(sysconfig_value NO_INIT)}
else
  MYSQLD_OPTS='' NO_INIT=''
fi

option() { # name, default; the name's words are separated by [-_]
  option_name=$1 option_default=$2
  set -f
  # shellcheck disable=SC2046,SC2086
  set -- ${instance:+"--defaults-group-suffix=@$instance"} \
    $(printf '%s\n' $MYSQLD_OPTS | sed -n '/^--no-defaults$/p; /^--defaults-/p')
  {
    my_print_defaults "$@" mysqld server mysqld-9.7
    # shellcheck disable=SC2086
    printf '%s\n' $MYSQLD_OPTS
  } | awk -v name="^--$option_name" -v value="$option_default" '
    next_is_value && !/^-/ { value = $0 }
    { next_is_value = $0 ~ (name "$") }
    sub(name "=", "") { value = $0 }
    END { print value }'
  set +f
}
