#!/bin/sh
# What the official image does with POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB, for a server without its tools.
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?must be set}"
  printf '%s\n' "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="${POSTGRES_USER:-postgres}" --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --locale=C -D "$PGDATA"
  rm /tmp/password
  printf 'host all all all scram-sha-256\n' >> "$PGDATA/pg_hba.conf"
  [ "${POSTGRES_DB:-postgres}" = postgres ] || printf 'create database "%s"\n' "$POSTGRES_DB" | postgres --single -D "$PGDATA" postgres >/dev/null
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp "$@"
