import { type DatabaseEngine, type EngineDatabase, restoredMark } from '../api.js'
import { connectionUrl } from './connection-url.js'
import { checkedName, checkedPassword, checkedUser, databaseNameOf } from './credential-rules.js'
import { choiceEnv, wantedFunction } from './dump-choice.js'
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

const names =
  "select datname from pg_database where datallowconn and datconnlimit <> -2 and datname <> 'template0' order by datname <> 'template1', datname <> 'postgres', datname"

/** What `pg_dump --create` says of a database beside what is in it, of those that every server has already. */
const properties = `
with found as (
  select oid, datname, datdba, datconnlimit, datacl, format('database %I', datname) as named
  from pg_database where datname = current_database()
),
settings as (
  select s.setrole, c.place, split_part(c.line, '=', 1) as name, substr(c.line, strpos(c.line, '=') + 1) as value
  from pg_db_role_setting s join found f on f.oid = s.setdatabase, unnest(s.setconfig) with ordinality as c (line, place)
)
select text from (
  select 1 as step, 0 as place, format('alter %s owner to %I;', named, pg_get_userbyid(datdba)) as text from found
  union all
  select 2, 0, format('alter %s connection limit %s;', named, datconnlimit) from found
  union all
  select 2, 0, format('comment on %s is %L;', named, shobj_description(oid, 'pg_database')) from found
  where shobj_description(oid, 'pg_database') is not null
  union all
  select 3, 0, format('revoke all on %s from public, %I;', named, pg_get_userbyid(datdba)) from found where datacl is not null
  union all
  select 4, 0, format('grant %s on %s to %s%s;', privilege_type, named,
    case when grantee = 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end,
    case when is_grantable then ' with grant option' else '' end)
  from found, aclexplode(datacl)
  union all
  select 5, place, format('alter %s set %I to %s;',
    case when setrole = 0 then named else format('role %I in %s', pg_get_userbyid(setrole), named) end, name,
    case
      when value = '""' then quote_literal('')
      -- These are lists of names, quoted already.
      when lower(name) in ('search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries') then value
      else quote_literal(value)
    end)
  from settings, found
) as told order by step, place, text
`

/**
 * The user that the server was made with is there already in one that was made with it as well, and its password is that server's own
 * affair: the dump may be of another database. What belongs to a database that is there already comes last: it might keep the rest out.
 */
const dumpScript = `set -eu
${wantedFunction}
ask() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
if [ "$BUSBAR_CHOICE" != only ]; then
  closed=$(ask -c "select string_agg(quote_ident(datname), ', ') from pg_database where not datallowconn and datname <> 'template0'")
  [ -z "$closed" ] || { echo "these databases take no connections, so that nobody can dump them: $closed. Drop them, or alter them with allow_connections true" >&2; exit 1; }
  globals=$(pg_dumpall --globals-only)
  printf '%s' "select 'create role \\"$PGUSER\\"' where not exists (select from pg_roles where rolname = '$PGUSER')"
  printf '\\\\gexec\\n'
  printf '%s\\n' "$globals" | grep -v -e "^CREATE ROLE \\"\\{0,1\\}$PGUSER\\"\\{0,1\\};$" -e "^ALTER ROLE \\"\\{0,1\\}$PGUSER\\"\\{0,1\\} WITH "
fi
names=$(ask -c "${names}")
printf '%s\\n' "$names" | while IFS= read -r name; do
  wanted "$name" || continue
  case $name in
    template1|postgres) printf '\\n\\\\connect %s\\n' "$name"; PGDATABASE=$name pg_dump ;;
    *) PGDATABASE=$name pg_dump --create ;;
  esac || exit 1
done
for name in template1 postgres; do
  wanted "$name" || continue
  printf '%s\\n' "$names" | grep -qxF -e "$name" || continue
  told=$(PGDATABASE=$name ask -f - <<'SQL'
${properties}
SQL
)
  printf '\\n\\\\connect %s\\n%s\\n' "$name" "$told"
done
printf '\\n\\\\echo ${restoredMark}\\n'
`

const claimScript = `set -eu
[ -n "$BUSBAR_DATABASE" ] || exit 0
psql -X -q -A -t -v ON_ERROR_STOP=1 -v name="$BUSBAR_DATABASE" <<'SQL'
select format('create database %I', :'name') where not exists (select from pg_database where datname = :'name')
\\gexec
SQL
`

const countScript = `set -eu
names=$(psql -X -q -A -t -c "${names}")
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
      argv: ['psql', '-X', '-q', '-A', '-t', '-c', names],
      env: connection(database)
    }),
    dump: (database, choice) => script(dumpScript, database, choiceEnv(choice)),
    restore: database => ({
      argv: ['psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-f', '-'],
      env: connection(database)
    }),
    claim: database =>
      script(claimScript, database, { BUSBAR_DATABASE: database.credentials.database ?? '' }),
    count: database => script(countScript, database)
  },
  upgradeRefusal: olderMajor
}
