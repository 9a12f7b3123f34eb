import { type DatabaseEngine, type EngineDatabase, restoredMark } from '../api.js'
import { problems } from '../problems.js'
import { connectionUrl } from './connection-url.js'
import { checkedName, checkedPassword, checkedUser, databaseNameOf } from './credential-rules.js'
import { choiceEnv, wantedFunction } from './dump-choice.js'
import { olderMajor } from './version.js'

const longestName = 64
const longestUser = 32
/** Of the name of a folder, as which a database is kept. */
const longestFolder = 255
/** Of a character that is no letter or digit of ASCII, in the name of that folder. */
const escapedBytes = 5
const ownNames = ['mysql', 'information_schema', 'performance_schema', 'sys']
/** Beside root, which has a rule of its own. Dumps leave these out, as every server has its own. */
const ownUsers = ['mysql', 'healthcheck']

function nameFault(name: string): string | undefined {
  if (/[\u{10000}-\u{10ffff}]/u.test(name)) return 'must have no characters beyond U+FFFF, such as emoji'
  const plain = name.replace(/[^A-Za-z0-9_]/g, '').length
  if (plain + (name.length - plain) * escapedBytes > longestFolder)
    return `must have fewer characters that are no letters or digits of ASCII: each takes ${escapedBytes} of ${longestFolder} bytes`
  return ownNames.includes(name.toLowerCase())
    ? `must not be one of the server's own: ${ownNames.join(', ')}`
    : undefined
}

const userFault = (user: string): string | undefined =>
  ownUsers.includes(user.toLowerCase())
    ? `must not be one of the server's own: ${ownUsers.join(', ')}`
    : undefined

/** The image of MySQL puts passwords between quotes as they are; that of MariaDB escapes them. */
const quotedFault = (password: string): string | undefined =>
  /['"\\]/.test(password)
    ? 'must have no quotes and backslashes, which the image of MySQL does not take'
    : undefined

/** Newer images have the programs under one name only. */
const client = `client=$(command -v mariadb || command -v mysql)
sql() { "$client" --host=127.0.0.1 --port=3306 --protocol=tcp --user=root --batch --raw --skip-column-names "$@"; }`

const names =
  "select schema_name from information_schema.schemata where schema_name not in ('information_schema','performance_schema','mysql','sys') order by schema_name"

/**
 * Users are told by their own statements, which every version takes; the tables that keep them differ from one to the next. They
 * come after the databases: a right to one table needs the table.
 */
const dumpScript = `set -eu
${client}
${wantedFunction}
dumper=$(command -v mariadb-dump || command -v mysqldump)
names=$(sql -e "${names}")
set --
while IFS= read -r name; do
  [ -n "$name" ] && wanted "$name" || continue
  set -- "$@" "$name"
done <<END
$names
END
if [ $# -gt 0 ]; then
  "$dumper" --host=127.0.0.1 --port=3306 --protocol=tcp --user=root --single-transaction --quick --routines --triggers --events --hex-blob --databases "$@"
fi
if [ "$BUSBAR_CHOICE" != only ]; then
  hex=
  others="user not in ('root','mysql','mysql.sys','mysql.session','mysql.infoschema','mariadb.sys','healthcheck','')"
  account="quote(user), '@', quote(host)"
  server=$(sql -e 'select version()')
  case $server in
    *MariaDB*)
      # PUBLIC is among them once anything was granted to it, and is made by nobody.
      sql -e "select concat('create role if not exists ', quote(user), ';') from mysql.user where is_role = 'Y' and user <> 'PUBLIC'"
      create=$(sql -e "select concat('show create user ', $account, ';') from mysql.user where is_role <> 'Y' and $others")
      grants=$(sql -e "select concat('show grants for ', if(is_role = 'Y', quote(user), concat($account)), ';') from mysql.user where $others order by is_role <> 'Y'")
      ;;
    *)
      # Any account may be a role. One that is granted to others by default is told with them, and has to be there before.
      order=
      roles=$(sql -e "select table_name from information_schema.tables where table_schema = 'mysql' and table_name = 'default_roles'")
      [ -z "$roles" ] || order='order by exists (select 1 from mysql.default_roles d where d.user = u.user and d.host = u.host)'
      create=$(sql -e "select concat('show create user ', $account, ';') from mysql.user u where $others $order")
      grants=$(sql -e "select concat('show grants for ', $account, ';') from mysql.user u where $others")
      # Older servers have no such variable, and write what is told as it is.
      variable=$(sql -e "show variables like 'print_identified_with_as_hex'")
      [ -z "$variable" ] || hex='set session print_identified_with_as_hex = on;'
      ;;
  esac
  # Asked for first, and written then: of a pipe only its last program is seen to fail.
  if [ -n "$create" ]; then
    told=$(printf '%s\\n' "$hex$create" | sql)
    printf '%s\\n' "$told" | sed -e 's/^CREATE USER /CREATE USER IF NOT EXISTS /' -e 's/$/;/'
  fi
  if [ -n "$grants" ]; then
    told=$(printf '%s\\n' "$grants" | sql)
    printf '%s\\n' "$told" | sed 's/$/;/'
  fi
fi
printf "flush privileges;\\nselect '${restoredMark}';\\n"
`

const countScript = `set -eu
${client}
names=$(sql -e "${names}")
while IFS= read -r name; do
  [ -n "$name" ] || continue
  printf '=%s\\n' "$name"
  counts=$(sql "$name" -e "select concat('select count(*) from ', char(96), replace(table_name, char(96), concat(char(96), char(96))), char(96), ';') from information_schema.tables where table_schema = database() and table_type = 'BASE TABLE' order by table_name")
  [ -z "$counts" ] || printf '%s\\n' "$counts" | sql "$name"
done <<END
$names
END
`

const restoreScript = `set -eu
${client}
sql
`

/**
 * The user of a dump that has this one keeps the rights from there. A dump without it is that of another server: its databases are for
 * whoever the restored one is for, with the rights to each that the user of a new database has to that, and none to the server. Names
 * are somebody else's: what stands for others in a grant (`_`, `%`), or takes that away (a backslash), stands for itself here, or a
 * database called `%` would give all of `mysql`. These signs are told by their codes, which no mode of the server reads otherwise.
 */
const claimScript = `set -eu
${client}
there=$(sql -e "select count(*) from mysql.user where user = '$BUSBAR_USER' and host = '%'")
printf '%s\\n' "$BUSBAR_SQL" | sql
[ "$there" = 0 ] || exit 0
literal() { printf "replace(%s, char(%d), concat(char(92), char(%d)))" "$1" "$2" "$2"; }
pattern=$(literal "$(literal "$(literal schema_name 92)" 95)" 37)
grants=$(sql -e "select concat('grant all privileges on ', char(96), replace($pattern, char(96), concat(char(96), char(96))), char(96), '.* to ', char(39), '$BUSBAR_USER', char(39), '@', char(39), char(37), char(39), ';') from (${names}) as named")
[ -z "$grants" ] || printf '%s\\n' "$grants" | sql
`

const quoted = (text: string): string => `'${text.replace(/\\/g, '\\\\').replace(/'/g, "''")}'`

function claimSql({ credentials: { user = '', password = '', database = '' } }: EngineDatabase): string {
  const account = `${quoted(user)}@'%'`
  // Its name has neither backticks nor backslashes; in a grant \`_\` and \`%\` would stand for others.
  const granted = database.replace(/[_%]/g, sign => `\\${sign}`)
  return [
    `create database if not exists \`${database}\`;`,
    `create user if not exists ${account} identified by ${quoted(password)};`,
    `alter user ${account} identified by ${quoted(password)};`,
    `grant all privileges on \`${granted}\`.* to ${account};`
  ].join('\n')
}

/** MySQL and MariaDB are one dialect here; the variables that their images take begin with another word. */
export function mysqlDialect(prefix: 'MYSQL' | 'MARIADB'): DatabaseEngine {
  const script = (
    text: string,
    { credentials }: EngineDatabase,
    env: Readonly<Record<string, string>> = {}
  ) => ({ argv: ['sh', '-c', text], env: { MYSQL_PWD: credentials.root_password ?? '', ...env } })
  const passwordFault = prefix === 'MYSQL' ? quotedFault : undefined
  return {
    newCredentials: (wanted, { name, slug, password }) => {
      const user = checkedUser(wanted.user || userOf(slug), { longest: longestUser, faultOf: userFault })
      if (user.toLowerCase() === 'root')
        throw problems.invalid({
          field: 'credentials.user',
          reason: 'must not be root, which is there beside it: root_password is its password'
        })
      return {
        root_password: checkedPassword('root_password', wanted.root_password, passwordFault) ?? password(),
        user,
        password: checkedPassword('password', wanted.password, passwordFault) ?? password(),
        database:
          checkedName(wanted.database_name, { longest: longestName, faultOf: nameFault }) ??
          databaseNameOf(name, longestName, nameFault, ownNames)
      }
    },
    dataPath: () => '/var/lib/mysql',
    container: ({ credentials }, { isEmpty, isAside = false }) => ({
      env: {
        [`${prefix}_ROOT_PASSWORD`]: credentials.root_password ?? '',
        ...(!isEmpty && {
          [`${prefix}_DATABASE`]: credentials.database ?? '',
          [`${prefix}_USER`]: credentials.user ?? '',
          [`${prefix}_PASSWORD`]: credentials.password ?? ''
        })
      },
      // What it is told to do at its times, the one that serves does.
      ...(isAside && { command: ['--event-scheduler=OFF'] })
    }),
    ready: database => script(`set -eu\n${client}\nsql --connect-timeout=5 -e 'select 1'`, database),
    connectionString: ({ credentials: { user = '', password = '', database = '' }, port }, host) =>
      connectionUrl('mysql', { user, password, host, port, database }),
    connectionParts: ({ credentials: { user = '', password = '', database = '' } }) => ({
      user,
      password,
      database
    }),
    dump: {
      format: 'mysql-sql',
      databases: database => script(`set -eu\n${client}\nsql -e "${names}"`, database),
      dump: (database, choice) => script(dumpScript, database, choiceEnv(choice)),
      restore: database => script(restoreScript, database),
      claim: database =>
        script(claimScript, database, {
          BUSBAR_SQL: claimSql(database),
          BUSBAR_USER: database.credentials.user ?? ''
        }),
      count: database => script(countScript, database)
    },
    upgradeRefusal: olderMajor
  }
}

const userOf = (slug: string): string =>
  slug
    .replace(/-/g, '_')
    .replace(/^[^a-z_]+/, '')
    .slice(0, longestUser)
    .replace(/(?<!_)_+$/, '') || 'app'
