import { type DatabaseEngine, type EngineDatabase, restoredMark } from '../api.js'
import { connectionUrl } from './connection-url.js'
import { checkedPassword, checkedUser } from './credential-rules.js'
import { choiceEnv } from './dump-choice.js'
import { olderMajor } from './version.js'

/**
 * At the container's own name: the server that its image runs first, to make the user, is at 127.0.0.1 alone, and is ended then. The
 * password is read from the environment: neither shell nor program gets it as an argument.
 */
const signIn =
  "const server = connect(`mongodb://${require('os').hostname()}:27017/admin?serverSelectionTimeoutMS=5000`); server.auth(process.env.BUSBAR_USER, process.env.BUSBAR_PASSWORD);"
const ours = "!['admin', 'config', 'local'].includes(name)"
const eachName = 'server.adminCommand({ listDatabases: 1, nameOnly: true }).databases.map(({ name }) => name)'

/** The programs take a password from a file, which is gone when they end. */
const withConfig = `set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(umask 077; printf 'password: %s\\n' "$BUSBAR_QUOTED" > "$folder/config.yml")
`
const connection = `--config="$folder/config.yml" --host="$(cat /etc/hostname)" --port=27017 --username="$BUSBAR_USER" --authenticationDatabase=admin --quiet`

/** One is dumped alone. Of several, or all but some, all are dumped, and a restore takes those that are meant. */
const dumpScript = `${withConfig}
set --
[ "$BUSBAR_CHOICE" != only ] || [ "$(printf '%s\\n' "$BUSBAR_NAMES" | wc -l)" -ne 1 ] || set -- "--db=$BUSBAR_NAMES"
mongodump ${connection} --archive "$@"
`
/**
 * Without --drop: the server is empty but for the user that it was made with, who is to stay, whoever that is in the dump. No name has
 * a sign of patterns in it.
 */
const restoreScript = `${withConfig}
set --
case $BUSBAR_CHOICE in
  only) option=--nsInclude ;;
  except) option=--nsExclude ;;
  *) option= ;;
esac
if [ -n "$option" ]; then
  while IFS= read -r name; do set -- "$@" "$option=$name.*"; done <<END
$BUSBAR_NAMES
END
fi
mongorestore ${connection} --archive --stopOnError "$@"
echo ${restoredMark}
`

const env = ({ credentials: { username = '', password = '' } }: EngineDatabase) => ({
  BUSBAR_USER: username,
  BUSBAR_PASSWORD: password,
  // As YAML reads it: a text of JSON is one of YAML.
  BUSBAR_QUOTED: JSON.stringify(password)
})
const script = (text: string, database: EngineDatabase, more: Readonly<Record<string, string>> = {}) => ({
  argv: ['sh', '-c', text],
  env: { ...env(database), ...more }
})
const shell = (text: string, database: EngineDatabase) => ({
  argv: ['mongosh', '--nodb', '--quiet', '--norc', '--eval', `${signIn} ${text}`],
  env: env(database)
})

export const engine: DatabaseEngine = {
  newCredentials: (wanted, { password }) => ({
    username: checkedUser(wanted.user || 'admin', { longest: 63 }),
    password: checkedPassword('password', wanted.password) ?? password()
  }),
  dataPath: () => '/data/db',
  container: ({ credentials }, { isAside = false }) => ({
    env: {
      MONGO_INITDB_ROOT_USERNAME: credentials.username ?? '',
      MONGO_INITDB_ROOT_PASSWORD: credentials.password ?? ''
    },
    // Documents whose time is over are removed by the one that serves.
    ...(isAside && { command: ['--setParameter', 'ttlMonitorEnabled=false'] })
  }),
  ready: database => shell('server.adminCommand({ ping: 1 }).ok === 1 || quit(1);', database),
  connectionString: ({ credentials: { username = '', password = '' }, port }, host) =>
    connectionUrl('mongodb', { user: username, password, host, port }),
  connectionParts: ({ credentials: { username = '', password = '' } }) => ({ user: username, password }),
  dump: {
    format: 'mongo-archive',
    databases: database =>
      shell(`${eachName}.filter(name => ${ours}).forEach(name => print(name));`, database),
    dump: (database, choice) => script(dumpScript, database, choiceEnv(choice)),
    restore: (database, choice) => script(restoreScript, database, choiceEnv(choice)),
    claim: () => null,
    count: database =>
      shell(
        `${eachName}.filter(name => ${ours}).forEach(name => { print('=' + name); const one = server.getSiblingDB(name); one.getCollectionInfos({ type: 'collection' }).forEach(found => print(one.getCollection(found.name).countDocuments({}))); });`,
        database
      )
  },
  upgradeRefusal: olderMajor
}
