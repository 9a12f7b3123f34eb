import { restoredMark } from '../api.js'
import { wantedFunction } from './dump-choice.js'

export const databaseNames =
  "select datname from pg_database where datallowconn and datconnlimit <> -2 and datname <> 'template0' order by datname <> 'template1', datname <> 'postgres', datname"

/** The first line of a dump of some databases that has the roles which are named in it. Those of before have them not. */
export const rolesMark = '-- busbar: with its roles'

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

/** Only a superuser may be given these. Some tables are not there in older servers. */
const superuserKinds = `(
    'pg_foreign_data_wrapper'::regclass, 'pg_event_trigger'::regclass,
    to_regclass('pg_catalog.pg_publication'), to_regclass('pg_catalog.pg_subscription')
  )`

/**
 * Owners of what only superusers may be given, who are none: they have been, or what they own came from another server. They are
 * superusers while a dump is read.
 */
const fallenOwners = `
select quote_ident(rolname) from pg_roles r
where not rolsuper and rolname !~ '[\\r\\n]' and exists (
  select from pg_shdepend where refclassid = 'pg_authid'::regclass and refobjid = r.oid and deptype = 'o' and classid in ${superuserKinds}
) order by rolname
`

/**
 * Who is named in what is dumped of some databases, as an array of SQL: the role with which the server began, of which no dependencies are
 * kept, and all that own something, may do something, have given that, or have settings.
 */
const namedRoles = `
\\set names \`printf '%s' "$BUSBAR_NAMES"\`
with chosen as (select oid from pg_database where datname = any (string_to_array(:'names', chr(10)))),
refers as (
  select refobjid as role from pg_shdepend
  where refclassid = 'pg_authid'::regclass and (
    dbid in (select oid from chosen)
    or classid = 'pg_database'::regclass and objid in (select oid from chosen)
    or classid = to_regclass('pg_catalog.pg_subscription')
  )
  union all select setrole from pg_db_role_setting where setdatabase in (select oid from chosen)
)
select quote_literal(array(
  select rolname from pg_roles where (oid = 10 or oid in (select role from refers)) and rolname !~ '^pg_|[\\r\\n]' order by rolname
)::text)
`

/**
 * The role with which the server began is told by the first line: a server that began with another one takes its name before it reads on,
 * see `restoreScript`. It is there already, and its password and attributes are that server's own affair: the dump may be of another
 * database. So are those of the user that the platform signs in as, where that is another role. What belongs to a database that is there
 * already comes last: it might keep the rest out.
 *
 * A dump of some databases makes the roles that it names where they are missing, without passwords. While it is read all of them are
 * superusers: what they may do here is less than what they could in their own server, and a view may be filled as its owner. Afterwards
 * they are what they were.
 */
export const dumpScript = `set -eu
${wantedFunction}
ask() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
lent=
if [ "$BUSBAR_CHOICE" = only ]; then
  roles=$(ask -f - <<'SQL'
${namedRoles}
SQL
)
  printf '%s\\n' '${rolesMark}'
  printf '%s\\n' "select array(select name from unnest($roles::text[]) as named (name) where name not in (select rolname from pg_roles))::text as busbar_made" '\\gset'
  printf '%s\\n' "select array(select rolname from pg_roles where rolname = any ($roles::text[]) and not rolsuper)::text as busbar_lent" '\\gset'
  printf '%s\\n' "select format('create role %I superuser', name) from unnest(:'busbar_made'::text[]) as named (name)" '\\gexec'
  printf '%s\\n' "select format('alter role %I superuser', name) from unnest(:'busbar_lent'::text[]) as named (name)" '\\gexec'
else
  closed=$(ask -c "select string_agg(quote_ident(datname), ', ') from pg_database where not datallowconn and datname <> 'template0'")
  [ -z "$closed" ] || { echo "these databases take no connections, so that nobody can dump them: $closed. Drop them, or alter them with allow_connections true" >&2; exit 1; }
  first=$(ask -c "select rolname from pg_roles where oid = 10")
  quoted=$(ask -c "select '\\"' || replace(rolname, '\\"', '\\"\\"') || '\\"' from pg_roles where oid = 10")
  begins=$(ask -c "select format('select %L where not exists (select from pg_roles where rolname = %L)', 'create role \\"' || replace(rolname, '\\"', '\\"\\"') || '\\"', rolname) from pg_roles where oid = 10")
  lent=$(ask -f - <<'SQL'
${fallenOwners}
SQL
)
  globals=$(pg_dumpall --globals-only)
  printf '%s\\\\gexec\\n' "$begins"
  printf '%s\\n' "$globals" | while IFS= read -r line; do
    case $line in
      "CREATE ROLE $first;" | "CREATE ROLE $quoted;" | "ALTER ROLE $first WITH "* | "ALTER ROLE $quoted WITH "*) ;;
      "ALTER ROLE $PGUSER WITH "* | "ALTER ROLE \\"$PGUSER\\" WITH "*) ;;
      *) printf '%s\\n' "$line" ;;
    esac
  done
  [ "$first" = "$PGUSER" ] || printf '%s\\n' "alter role \\"$PGUSER\\" superuser createdb createrole replication bypassrls;"
  [ -z "$lent" ] || printf '%s\\n' "$lent" | sed 's/.*/alter role & superuser;/'
fi
names=$(ask -c "${databaseNames}")
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
printf '\\n\\\\connect postgres\\n'
[ "$BUSBAR_CHOICE" != only ] || printf '%s\\n' "select format('alter role %I nosuperuser', name) from unnest(:'busbar_made'::text[] || :'busbar_lent'::text[]) as named (name)" '\\gexec'
[ -z "$lent" ] || printf '%s\\n' "$lent" | sed 's/.*/alter role & nosuperuser;/'
printf '\\n\\\\echo ${restoredMark}\\n'
`
