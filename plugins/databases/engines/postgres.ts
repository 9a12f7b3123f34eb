import type { DatabaseEngine, EngineDatabase } from '../api.js'
import { connectionUrl } from './connection-url.js'
import { checkedName, checkedPassword, checkedUser, databaseNameOf } from './credential-rules.js'
import { choiceEnv } from './dump-choice.js'
import { databaseNames, dumpScript } from './postgres-dump.js'
import { restoreScript } from './postgres-restore.js'
import { rolesGuide } from './postgres-roles.js'
import { majorOf, olderMajor } from './version.js'

const longestName = 63
const ownNames = ['template0', 'template1']

/** It cuts longer ones off without a word, and what is looked for by the whole name is not found then. */
const nameFault = (name: string): string | undefined => {
  if (Buffer.byteLength(name) > longestName) return `must have at most ${longestName} bytes in UTF-8`
  return ownNames.includes(name)
    ? 'must not be template0 or template1, of which the server makes others'
    : undefined
}

const userFault = (user: string): string | undefined =>
  user.startsWith('pg_') || ['public', 'none'].includes(user)
    ? 'must not be public or none, or begin with pg_: the server keeps these for itself'
    : undefined

/** The programs of PostgreSQL take all of it from their environment. */
const connection = ({ credentials }: EngineDatabase): Readonly<Record<string, string>> => ({
  PGHOST: '127.0.0.1',
  PGPORT: '5432',
  PGUSER: credentials.user ?? '',
  PGPASSWORD: credentials.password ?? '',
  PGDATABASE: 'postgres',
  PGCONNECT_TIMEOUT: '5',
  // What somebody has set for a database or a user, for their own work.
  PGOPTIONS: '-c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off'
})

const claimScript = `set -eu
[ -n "$BUSBAR_DATABASE" ] || exit 0
psql -X -q -A -t -v ON_ERROR_STOP=1 -v name="$BUSBAR_DATABASE" <<'SQL'
select format('create database %I', :'name') where not exists (select from pg_database where datname = :'name')
\\gexec
SQL
`

const countScript = `set -eu
names=$(psql -X -q -A -t -c "${databaseNames}")
printf '%s\\n' "$names" | while IFS= read -r name; do
  [ "$name" != template1 ] || continue
  printf '=%s\\n' "$name"
  PGDATABASE=$name psql -X -q -A -t -v ON_ERROR_STOP=1 <<'SQL' || exit 1
select format('select count(*) from only %I.%I', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
order by n.nspname, c.relname
\\gexec
SQL
done
`

const script = (text: string, database: EngineDatabase, env: Readonly<Record<string, string>> = {}) => ({
  argv: ['sh', '-c', text],
  env: { ...connection(database), ...env }
})

export const engine: DatabaseEngine = {
  newCredentials: (wanted, { name, password }) => ({
    user: checkedUser(wanted.user || 'postgres', { longest: longestName, faultOf: userFault }),
    password: checkedPassword('password', wanted.password) ?? password(),
    database:
      checkedName(wanted.database_name, { longest: longestName, faultOf: nameFault }) ??
      databaseNameOf(name, longestName, nameFault, ownNames)
  }),
  dataPath: ({ version }) => {
    const major = majorOf(version)
    return major === null || major >= 18 ? '/var/lib/postgresql' : '/var/lib/postgresql/data'
  },
  container: ({ credentials }, { isEmpty }) => ({
    env: {
      POSTGRES_USER: credentials.user ?? '',
      POSTGRES_PASSWORD: credentials.password ?? '',
      POSTGRES_DB: isEmpty ? 'postgres' : (credentials.database ?? '')
    },
    // It ends its clients' connections instead of waiting for them.
    stopSignal: 'SIGINT'
  }),
  ready: database => ({
    argv: ['psql', '-X', '-q', '-A', '-t', '-c', 'select 1'],
    env: connection(database)
  }),
  connectionString: ({ credentials, port }, host) =>
    connectionUrl('postgresql', { ...credentials, host, port }),
  connectionParts: ({ credentials: { user = '', password = '', database = '' } }) => ({
    user,
    password,
    database
  }),
  dump: {
    format: 'postgres-sql',
    databases: database => ({
      argv: ['psql', '-X', '-q', '-A', '-t', '-c', databaseNames],
      env: connection(database)
    }),
    dump: (database, choice) => script(dumpScript, database, choiceEnv(choice)),
    restore: (database, choice) => script(restoreScript, database, choiceEnv(choice)),
    guide: (database, choice) => (choice.kind === 'only' ? rolesGuide(connection(database)) : null),
    claim: database =>
      script(claimScript, database, { BUSBAR_DATABASE: database.credentials.database ?? '' }),
    count: database => script(countScript, database)
  },
  upgradeRefusal: olderMajor
}
