import { execFile } from 'node:child_process'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { type EngineCommand, type EngineDatabase, restoredMark } from '../api.js'
import { engine as mongo } from '../engines/mongo.js'
import { engine as mysql } from '../engines/mysql.js'
import { engine as redis } from '../engines/redis.js'

const database: EngineDatabase = {
  version: '8',
  credentials: { username: 'admin', password: 'p', root_password: 'p' },
  port: 1,
  dataDir: null
}
const tools = ['cat', 'cp', 'date', 'grep', 'mkdir', 'mktemp', 'rm', 'sed', 'sh', 'sleep', 'tail', 'tr', 'wc']

interface Ended {
  readonly code: number
  readonly output: string
  readonly errors: string
}

/** Runs a script with programs that are none but these and the tools of a shell: servers of all versions are not to be had everywhere. */
async function ran(
  t: Test,
  { argv: [, ...words], env }: EngineCommand,
  programs: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {}
): Promise<Ended> {
  const folder = await mkdtemp(join(tmpdir(), 'busbar-stubs-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(programs))
    await writeFile(join(folder, name), `#!/bin/sh\n${text}`, { mode: 0o755 })
  for (const name of tools) if (!(name in programs)) await symlink(`/bin/${name}`, join(folder, name))
  return await new Promise(resolve => {
    const child = execFile(
      '/bin/sh',
      words,
      { env: { ...env, ...more, PATH: folder, FOLDER: folder }, timeout: 60_000 },
      (error, output, errors) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), output, errors })
      }
    )
    // Some read nothing of it.
    child.stdin?.on('error', () => {}).end('a dump')
  })
}

const dumpOf = ({ dump }: typeof mysql) => {
  if (dump === null) throw new Error('it is dumped')
  return dump
}

/** A server with the user `a`, whose default role `reader` comes behind it. OLD: without roles, and with fewer variables. */
const client = `
text=
while [ $# -gt 0 ]; do
  [ "$1" != -e ] || { text=$2; shift; }
  shift
done
[ -n "$text" ] || text=$(cat)
fail() { echo "$1" >&2; exit 1; }
case $text in
  *'select version()'*) [ -n "\${OLD:-}" ] && echo 5.7.44 || echo 8.4.0; exit ;;
  *schemata*) echo shop; exit ;;
  *default_roles\\'*) [ -n "\${OLD:-}" ] || echo default_roles; exit ;;
  "show variables like 'print_identified_with_as_hex'") [ -n "\${OLD:-}" ] || printf 'print_identified_with_as_hex\\tOFF\\n'; exit ;;
  *'print_identified_with_as_hex = on'*) [ -z "\${OLD:-}" ] || fail 'ERROR 1193: Unknown system variable' ;;
esac
case $text in
  *"concat('show create user"*exists*) echo "show create user 'reader'@'%';"; echo "show create user 'a'@'%';" ;;
  *"concat('show create user"*) echo "show create user 'a'@'%';"; echo "show create user 'reader'@'%';" ;;
  *"concat('show grants"*) echo "show grants for 'a'@'%';"; echo "show grants for 'reader'@'%';" ;;
  *'show create user'*)
    [ "\${FAIL:-}" != users ] || fail 'ERROR 2013: Lost connection'
    printf '%s\\n' "$text" | sed -n "s/.*show create user \\\\('[a-z]*'@'%'\\\\);/CREATE USER \\\\1 IDENTIFIED BY 'x'/p"
    ;;
  *'show grants'*)
    [ "\${FAIL:-}" != grants ] || fail 'ERROR 2013: Lost connection'
    printf '%s\\n' "$text" | sed -n "s/show grants for \\\\('[a-z]*'@'%'\\\\);/GRANT USAGE ON *.* TO \\\\1/p"
    ;;
  *) fail "what is $text?" ;;
esac
`
const servers = { mysql: client, mysqldump: 'echo "create database shop;"\n' }
const users = (output: string): string[] =>
  output.split('\n').filter(line => line.startsWith('CREATE USER') || line.startsWith('GRANT'))

void test('a dump of MySQL has its users, and those first that are the roles of others', async t => {
  const ended = await ran(t, dumpOf(mysql).dump(database, { kind: 'all' }), servers)
  t.equal(ended.code, 0, ended.errors)
  t.same(users(ended.output), [
    "CREATE USER IF NOT EXISTS 'reader'@'%' IDENTIFIED BY 'x';",
    "CREATE USER IF NOT EXISTS 'a'@'%' IDENTIFIED BY 'x';",
    "GRANT USAGE ON *.* TO 'a'@'%';",
    "GRANT USAGE ON *.* TO 'reader'@'%';"
  ])
  t.match(ended.output, restoredMark)
})

void test('a dump of an older MySQL, without roles and with fewer variables, has its users too', async t => {
  const ended = await ran(t, dumpOf(mysql).dump(database, { kind: 'all' }), servers, { OLD: 'yes' })
  t.equal(ended.code, 0, ended.errors)
  t.equal(users(ended.output).length, 4)
})

void test('a dump of MySQL whose users or grants are not told is none', async t => {
  for (const what of ['users', 'grants']) {
    const ended = await ran(t, dumpOf(mysql).dump(database, { kind: 'all' }), servers, { FAIL: what })
    t.not(ended.code, 0, what)
    t.match(ended.errors, /Lost connection/)
    t.notMatch(ended.output, restoredMark)
  }
})

/**
 * LOOKS: how often it says that it still writes. WRITES, SAVES: what it says of that. LOST: keys are not on the disk. LINK, COPIES:
 * whether it has copied the dump, and how often it began.
 */
const redisClient = `
port=6379
case "$*" in *16379*) port=16379 ;; esac
case "$*" in
  *' ping') echo PONG ;;
  *'info replication') printf 'master_link_status:%s\\r\\n' "\${LINK:-up}" ;;
  *'info stats') printf 'sync_full:%s\\r\\nsync_partial_ok:0\\r\\n' "\${COPIES:-1}" ;;
  *'info persistence')
    left=$(cat "$FOLDER/looks" 2>/dev/null || echo "\${LOOKS:-0}")
    echo $((left - 1)) > "$FOLDER/looks"
    [ "$left" -gt 0 ] && writing=1 || writing=0
    printf 'aof_enabled:1\\r\\naof_rewrite_in_progress:%s\\r\\naof_rewrite_scheduled:0\\r\\naof_last_bgrewrite_status:%s\\r\\naof_last_write_status:ok\\r\\n' $writing "\${WRITES:-ok}"
    ;;
  *' save') echo "\${SAVES:-OK}" ;;
  *'config get dir') printf 'dir\\n%s\\n' "$FOLDER/data" ;;
  *'info keyspace')
    [ -z "\${UNCOUNTED:-}" ] || { echo 'NOAUTH Authentication required.'; exit 0; }
    printf '# Keyspace\\r\\n'
    [ $port = 16379 ] && [ -n "\${LOST:-}" ] || printf 'db0:keys=3,expires=1,avg_ttl=0\\r\\n'
    ;;
  *shutdown*) kill "$(cat "$FOLDER/pid")" ;;
  *) echo OK ;;
esac
`
const redisPrograms = {
  'redis-cli': redisClient,
  'redis-check-rdb': 'exit 0\n',
  'redis-server': 'echo $$ > "$FOLDER/pid"; exec sleep 60\n'
}
const restoring = async (t: Test, more: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  await ran(t, dumpOf(redis).restore(database, { kind: 'all' }), redisPrograms, more)

void test('a restore of Redis is over when all of it is on the disk', async t => {
  const ended = await restoring(t, { LOOKS: '2' })
  t.equal(ended.code, 0, ended.errors)
  t.match(ended.output, restoredMark)
})

void test('a restore of Redis that is not on the disk is none', async t => {
  for (const [what, more, says] of [
    ['the files cannot be written', { WRITES: 'err' }, /could not write it/],
    ['it is not saved', { SAVES: 'ERR no space' }, /ERR no space/],
    ['the dump cannot be copied', { LINK: 'down', COPIES: '4' }, /could not copy it to its disk/],
    ['what is written is less', { LOST: 'yes' }, /what is on its disk is not what it serves/]
  ] as const) {
    const ended = await restoring(t, more)
    t.not(ended.code, 0, what)
    t.match(ended.errors, says, what)
    t.notMatch(ended.output, restoredMark, what)
  }
})

void test('a restore of Redis begins with room for all that it keeps for a time, where that is known', async t => {
  const restored = async (df: string): Promise<Ended> =>
    await ran(t, dumpOf(redis).restore(database, { kind: 'all' }), {
      ...redisPrograms,
      // A dump of 100 KiB, as far as that goes.
      wc: 'echo 102400',
      df
    })
  const told = (free: number): string =>
    `printf 'Filesystem 1024-blocks Used Available Capacity Mounted on\\noverlay 61255492 20000000 ${free} 33%% /data\\n'`
  t.match(await restored(told(201)), { code: 0, output: new RegExp(restoredMark) })
  t.match(await restored(told(200)), {
    code: 1,
    errors:
      /too little room on the disk of the engine: it takes 200 KiB more for a time, and 200 KiB are free/
  })
  t.match(await restored('exit 1'), { code: 0, output: new RegExp(restoredMark) })
})

void test('a Redis that does not say what it has is not counted as empty', async t => {
  const count = dumpOf(redis).count(database)
  t.match(await ran(t, count, redisPrograms), { code: 0, output: '=0\n3\n' })
  t.match(await ran(t, count, redisPrograms, { UNCOUNTED: 'yes' }), { code: 1, errors: /NOAUTH/ })
})

void test('the server that the image of MongoDB runs first is not asked', async t => {
  const { ready, dump } = mongo
  const commands = [
    ready(database),
    ...(dump === null
      ? []
      : [
          dump.databases(database),
          dump.dump(database, { kind: 'all' }),
          dump.restore(database, { kind: 'all' }),
          dump.count(database)
        ])
  ]
  t.equal(commands.length, 5)
  // It listens there alone.
  for (const command of commands) t.notMatch(command?.argv.join(' '), /127\.0\.0\.1|localhost/)
})

void test('what servers do by themselves at their times is done by the one that serves alone', async t => {
  const options = { isEmpty: false, isAside: true }
  t.match(mysql.container(database, options), { command: ['--event-scheduler=OFF'] })
  t.match(mongo.container(database, options), { command: ['--setParameter', 'ttlMonitorEnabled=false'] })
  for (const engine of [mysql, mongo])
    t.equal(engine.container(database, { isEmpty: false }).command, undefined)
})
