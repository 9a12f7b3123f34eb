import { type DatabaseEngine, type EngineDatabase, restoredMark } from '../api.js'
import { connectionUrl } from './connection-url.js'
import { checkedPassword } from './credential-rules.js'

/** The server reads its password from its input: its arguments are seen by whoever sees the container. Each change is on the disk within a second. */
const serve = `exec docker-entrypoint.sh redis-server --appendonly yes - <<END
$BUSBAR_REDIS_CONFIG
END
`

/**
 * A server of its own reads the file, on a port that only this container has, and refuses one that is not whole. The server copies
 * it from there as a replica does: all of it, or nothing.
 */
const restoreScript = `set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/restore.rdb"
redis-check-rdb "$folder/restore.rdb" >&2
from() { REDISCLI_AUTH= redis-cli -h 127.0.0.1 -p 16379 "$@"; }
to() { redis-cli -h 127.0.0.1 -p 6379 "$@"; }
redis-server --port 16379 --bind 127.0.0.1 --dir "$folder" --dbfilename restore.rdb --save '' --appendonly no --daemonize yes --logfile "$folder/log" >/dev/null
until [ "$(from ping 2>/dev/null)" = PONG ]; do
  [ -e "$folder/log" ] && grep -q 'Fatal error\\|Terminating' "$folder/log" && { cat "$folder/log" >&2; exit 1; }
  sleep 0.2
done
to config set masterauth '' >/dev/null
to replicaof 127.0.0.1 16379 >/dev/null
until to info replication | grep -q 'master_link_status:up'; do sleep 0.2; done
to replicaof no one >/dev/null
from shutdown nosave >/dev/null 2>&1 || true
to save >/dev/null
echo ${restoredMark}
`

const countScript = `set -eu
redis-cli -h 127.0.0.1 -p 6379 info keyspace | tr -d '\\r' | sed -n 's/^db\\([0-9]*\\):keys=\\([0-9]*\\),.*/=\\1\\n\\2/p'
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
