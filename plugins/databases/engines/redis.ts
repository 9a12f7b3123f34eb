import { type DatabaseEngine, type EngineDatabase, restoredMark } from '../api.js'
import { connectionUrl } from './connection-url.js'
import { checkedPassword } from './credential-rules.js'

/** The server reads its password from its input: its arguments are seen by whoever sees the container. Each change is on the disk within a second. */
const serve = `exec docker-entrypoint.sh redis-server --appendonly yes - <<END
$BUSBAR_REDIS_CONFIG
END
`

/** How long the server may take to copy a dump, and to write it down: longer than any that fits into a memory does. */
const copySeconds = 7200
/** How often the server begins to copy a dump: with no room for it, it would begin again for as long as it may take. */
const mostCopies = 4
/** Looks at a server that does not write, half a second apart, after which it is taken to be unable to. */
const mostFailedLooks = 10

/**
 * A server of its own reads the file, on a port that only this container has, and refuses one that is not whole. The server copies
 * it from there as a replica does: all of it, or nothing. It is served by then, and on the disk only when the first of the files that are
 * appended to is written: until then a start would read an empty one. So that is waited for, and what is on the disk is read by another
 * server of its own, which has to have the same keys; but for those that expire, which go meanwhile. For a time that takes the disk
 * three times as long as the dump: what is copied, what is saved and what is appended to; then a copy of the latter instead of the first.
 */
const restoreScript = `set -eu
folder=$(mktemp -d)
other=
trap '[ -z "$other" ] || kill -9 "$other" 2>/dev/null || true; rm -rf "$folder"' EXIT
cat > "$folder/restore.rdb"
checked=$(redis-check-rdb "$folder/restore.rdb" 2>&1) || { printf '%s\\n' "$checked" | tail -n 5 >&2; exit 1; }
from() { REDISCLI_AUTH= redis-cli -h 127.0.0.1 -p 16379 "$@"; }
to() { redis-cli -h 127.0.0.1 -p 6379 "$@"; }
end=$(($(date +%s) + ${copySeconds}))
inTime() { [ "$(date +%s)" -lt "$end" ] || { echo "the server took longer than ${copySeconds} seconds" >&2; exit 1; }; }
# Its end, before it answers, is that of the restore.
untilOther() {
  redis-server --port 16379 --bind 127.0.0.1 --save '' --logfile "$folder/log" "$@" >/dev/null &
  other=$!
  until [ "$(from ping 2>/dev/null)" = PONG ]; do
    kill -0 "$other" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
    inTime
    sleep 0.2
  done
}
endOther() { from shutdown nosave >/dev/null 2>&1 || true; wait "$other" || true; other=; }
lasting() {
  keys=$("$1" info keyspace | tr -d '\\r')
  case $keys in *'# Keyspace'*) ;; *) echo "it could not be counted: $keys" >&2; return 1 ;; esac
  printf '%s\\n' "$keys" | sed -n 's/^\\(db[0-9]*\\):keys=\\([0-9]*\\),expires=\\([0-9]*\\).*/\\1 \\2 \\3/p' |
    while read -r name all expiring; do
      [ "$all" -eq "$expiring" ] || echo "$name has $((all - expiring)) keys"
    done
}

data=$(to config get dir | tail -n 1)
size=$(($(wc -c < "$folder/restore.rdb") / 1024))
free=$(df -Pk "$data" 2>/dev/null | tail -n 1 | sed -n 's/^.* \\([0-9][0-9]*\\)  *[0-9]*% .*$/\\1/p')
[ -z "$free" ] || [ "$free" -gt $((size * 2)) ] || {
  echo "there is too little room on the disk of the engine: it takes $((size * 2)) KiB more for a time, and $free KiB are free: make room on it, and try again" >&2
  exit 1
}
untilOther --dir "$folder" --dbfilename restore.rdb --appendonly no --repl-diskless-sync-delay 0
to config set masterauth '' >/dev/null
to replicaof 127.0.0.1 16379 >/dev/null
while true; do
  state=$(to info replication)
  case $state in *master_link_status:up*) break ;; esac
  begun=$(from info stats | tr -d '\\r' | sed -n 's/^sync_full://p')
  [ "\${begun:-0}" -lt ${mostCopies} ] || { echo 'the server could not copy it to its disk' >&2; exit 1; }
  kill -0 "$other" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
  inTime
  sleep 0.2
done
to replicaof no one >/dev/null
endOther
rm -f "$folder/restore.rdb"

failed=0
while true; do
  state=$(to info persistence)
  case $state in
    *aof_enabled:1*) ;;
    *) echo "the server does not say whether it has written it: $state" >&2; exit 1 ;;
  esac
  case $state in
    *aof_rewrite_in_progress:1*) ;;
    *aof_last_bgrewrite_status:err* | *aof_last_write_status:err*)
      failed=$((failed + 1))
      [ "$failed" -lt ${mostFailedLooks} ] || { echo 'the server could not write it to its disk' >&2; exit 1; }
      ;;
    *aof_rewrite_scheduled:1*) ;;
    *) break ;;
  esac
  inTime
  sleep 0.5
done
saved=$(to save)
[ "$saved" = OK ] || { echo "the server did not save it: $saved" >&2; exit 1; }
mkdir "$folder/written"
for name in appendonlydir appendonly.aof; do
  [ ! -e "$data/$name" ] || cp -a "$data/$name" "$folder/written/"
done
untilOther --dir "$folder/written" --appendonly yes --aof-load-truncated no
served=$(lasting to)
written=$(lasting from)
endOther
[ "$served" = "$written" ] || { printf 'what is on its disk is not what it serves: %s; it serves %s\\n' "$written" "$served" >&2; exit 1; }
echo ${restoredMark}
`

const countScript = `set -eu
keys=$(redis-cli -h 127.0.0.1 -p 6379 info keyspace)
# An error of its is an answer like any other.
case $keys in *'# Keyspace'*) ;; *) printf '%s\\n' "$keys" >&2; exit 1 ;; esac
printf '%s\\n' "$keys" | tr -d '\\r' | sed -n 's/^db\\([0-9]*\\):keys=\\([0-9]*\\),.*/=\\1\\n\\2/p'
`

const script = (text: string, { credentials }: EngineDatabase) => ({
  argv: ['sh', '-c', text],
  env: { REDISCLI_AUTH: credentials.password ?? '' }
})

export const engine: DatabaseEngine = {
  newCredentials: (wanted, { password }) => ({
    password: checkedPassword('password', wanted.password) ?? password()
  }),
  dataPath: () => '/data',
  container: ({ credentials }) => ({
    env: { BUSBAR_REDIS_CONFIG: `requirepass ${configText(credentials.password ?? '')}` },
    entrypoint: ['sh', '-c', serve]
  }),
  // An error of its is an answer like any other, with exit code 0.
  ready: database => script('redis-cli -h 127.0.0.1 -p 6379 ping | grep -qx PONG', database),
  connectionString: ({ credentials, port }, host) =>
    connectionUrl('redis', { password: credentials.password ?? '', host, port }),
  connectionParts: ({ credentials: { password = '' } }) => ({ user: 'default', password }),
  dump: {
    format: 'redis-rdb',
    databases: () => null,
    dump: database => script('exec redis-cli -h 127.0.0.1 -p 6379 --rdb -', database),
    restore: database => script(restoreScript, database),
    claim: () => null,
    count: database => script(countScript, database)
  }
}

/** A text as its configuration takes it, whatever is in it. */
const configText = (text: string): string =>
  `"${[...Buffer.from(text)].map(byte => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`
