/**
 * Reads a dump. One of everything names the role with which its server began, in its first line: what is in it is true only of a server
 * that began with a role of that name. A membership is taken as granted by the first role, or by whoever may grant it, and by no other
 * superuser; event triggers and publications of everything are owned by superusers. So the first role of this server has that name while
 * it is read, and gets its own back: all that belonged to the former is its own then. Where the dump has a role of that name as well,
 * this one is a superuser with the password of this server, and the first role keeps the name from the dump, without a password: nobody
 * signs in as that.
 *
 * Nobody renames the role of their own session: somebody else does it, who is gone afterwards. No line is read ahead of `psql`.
 */
export const restoreScript = `set -eu
as() {
  user=$1; shift
  PGUSER=$user psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"
}
own=$PGUSER
[ "$BUSBAR_CHOICE" != only ] || { as "$own" -f -; exit; }
helper=busbar_restore_$$_$(date +%s)
renamed() {
  as "$1" -v helper="$helper" -f - <<'SQL'
\\set password \`printf '%s' "$PGPASSWORD"\`
create role :"helper" superuser login password :'password';
SQL
  as "$helper" -v was="$1" -v becomes="$2" -f - <<'SQL'
\\set password \`printf '%s' "$PGPASSWORD"\`
alter role :"was" rename to :"becomes";
alter role :"becomes" password :'password';
SQL
  as "$2" -v helper="$helper" -f - <<'SQL'
drop role :"helper";
SQL
}
IFS= read -r line || true
case $line in
  "select 'create role \\""*"\\"' where not exists "*)
    first=\${line#*\\"}
    first=$(printf '%s\\n' "\${first%%\\"? where not exists *}" | sed -e "s/''/'/g" -e 's/""/"/g') ;;
  *)
    { printf '%s\\n' "$line"; cat; } | as "$own" -f -
    exit ;;
esac
if [ "$first" = "$own" ]; then
  as "$own" -f -
  exit
fi
renamed "$own" "$first"
as "$first" -f -
there=$(as "$first" -v own="$own" -f - <<'SQL'
select count(*) from pg_roles where rolname = :'own'
SQL
)
if [ "$there" = 0 ]; then
  renamed "$first" "$own"
else
  as "$first" -v own="$own" -f - <<'SQL'
\\set password \`printf '%s' "$PGPASSWORD"\`
alter role :"own" superuser createdb createrole inherit login replication bypassrls connection limit -1 password :'password' valid until 'infinity';
SQL
  as "$own" -v first="$first" -f - <<'SQL'
alter role :"first" nologin password null;
SQL
fi
`
