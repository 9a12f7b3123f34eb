import type { Test } from 'tap'
import { restoredMark } from '../api.js'
import { choiceEnv, wantedFunction } from '../engines/dump-choice.js'
import { engine } from '../engines/postgres.js'

const names =
  "select datname from pg_database where datallowconn and datconnlimit <> -2 and datname <> 'template0' order by datname <> 'template1', datname <> 'postgres', datname"

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

/** As dumps were written before they had the roles of some databases: there are stored ones. */
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

/** Backups of PostgreSQL are written as they were before, until what this returns is called or the test ends. */
export function writeAsBefore(t: Test): () => void {
  const dump = engine.dump as { dump: NonNullable<typeof engine.dump>['dump'] }
  const present = dump.dump
  dump.dump = (database, choice) => ({
    argv: ['sh', '-c', dumpScript],
    env: { ...engine.ready(database)?.env, ...choiceEnv(choice) }
  })
  const back = (): void => {
    dump.dump = present
  }
  t.teardown(back)
  return back
}
