import { test } from 'tap'
import { explainExit } from '../rollout/exit-diagnosis.js'

const settings = {
  memoryLimit: 64 * 1024 * 1024,
  containerCaps: 'minimal',
  readonlyRootfs: true,
  startCommand: null
} as const
const exit = (exitCode: number | null, ...lines: string[]) =>
  explainExit({ exitCode, oomKilled: false, lines }, settings)

test('an exit is told with its code, its last output and a remedy', async t => {
  const failure = exit(1, 'starting', 'Error: no DATABASE_URL')
  t.equal(failure.reason, 'the container exited with code 1 before it was healthy')
  t.equal(failure.evidence, 'starting\nError: no DATABASE_URL')
  t.equal(failure.remedy, 'its last output says why')
})

test('the usual reasons are recognised', async t => {
  t.match(exit(1, "Error: EROFS: read-only file system, mkdir '/data'").remedy, /readonly_rootfs/)
  t.match(
    exit(1, 'nginx: [emerg] chown("/var/cache/nginx") failed (1: Operation not permitted)').remedy,
    /container_caps/
  )
  t.match(exit(0).remedy, /keep running/)
  t.match(exit(127).remedy, /not found/)
  t.match(exit(126).remedy, /executed/)
  t.match(exit(null).reason, /ended before/)
  t.match(
    explainExit({ exitCode: 127, oomKilled: false, lines: [] }, { ...settings, startCommand: ['nodee', 'x'] })
      .remedy,
    /start_command .*begins with nodee/
  )
  t.match(exit(126, '[FATAL tini (7)] exec /app failed: Permission denied').remedy, /cannot be executed/)
  t.match(explainExit({ exitCode: 137, oomKilled: true, lines: [] }, settings), {
    reason: /its limit of 64 MiB/,
    remedy: /memory_limit/
  })
})

test('settings that are not in force are not blamed', async t => {
  const open = {
    memoryLimit: 0,
    containerCaps: 'standard',
    readonlyRootfs: false,
    startCommand: null
  } as const
  t.equal(
    explainExit({ exitCode: 1, oomKilled: false, lines: ['EROFS', 'Permission denied'] }, open).remedy,
    'its last output says why'
  )
  t.match(
    explainExit({ exitCode: 137, oomKilled: true, lines: [] }, open).reason,
    /more memory than there is/
  )
})

test('a start command that cannot be run is told apart from the command of the image', async t => {
  const of = (exitCode: number, startCommand: readonly string[] | null, ...lines: string[]): string | null =>
    explainExit({ exitCode, oomKilled: false, lines }, { ...settings, startCommand }).remedy
  t.match(of(127, ['nodee']), /^its start_command was not found in the image: .*begins with nodee/)
  t.match(of(126, ['app.js']), /^its start_command cannot be executed: .*begins with app\.js/)
  t.match(of(127, null), /^its command was not found: check the CMD/)
  t.match(of(126, null), /^its command cannot be executed: check its file mode/)
  t.equal(of(125, ['x']), 'its last output says why')
  t.equal(of(128, null), 'its last output says why')
})

test('words of the first process count only with its exit codes, and before those of the program', async t => {
  const fatal = '[FATAL tini (7)] exec /app failed: Permission denied'
  t.match(exit(127, fatal).remedy, /^its command was not found/)
  t.match(exit(126, fatal).remedy, /^its command cannot be executed/)
  t.match(exit(1, fatal).remedy, /container_caps/)
  t.match(exit(126, 'Permission denied').remedy, /container_caps/, 'the program said it')
})

test('an image for another kind of machine is the reason before any other', async t => {
  const failure = explainExit(
    { exitCode: 0, oomKilled: false, lines: ['exec format error', 'EROFS', 'EACCES'] },
    { ...settings, foreignPlatform: 'linux/arm64' }
  )
  t.equal(failure.remedy, 'its image is made for linux/arm64, not for this machine: push it for this one too')
})

test('a process that was killed, and two that want the same port, have their own remedies', async t => {
  t.match(exit(137).remedy, /^it was killed from outside/)
  t.equal(exit(138).remedy, 'its last output says why')
  t.equal(exit(136).remedy, 'its last output says why')
  t.equal(exit(null).remedy, 'its last output says why')
  t.equal(exit(null).evidence, null, 'it said nothing')
  for (const line of ['Error: listen EADDRINUSE: :::80', 'bind: Address already in use'])
    t.equal(exit(1, line).remedy, 'two of its own processes want the same port', line)
  for (const line of ['operation not permitted', 'EPERM', 'EACCES', 'setgid(101) failed', 'setuid', 'chown'])
    t.match(exit(1, line).remedy, /container_caps/, line)
  t.match(exit(0, 'Read-only file system').remedy, /readonly_rootfs/)
  t.match(
    explainExit(
      { exitCode: 1, oomKilled: false, lines: ['EROFS: permission denied'] },
      { ...settings, readonlyRootfs: false }
    ).remedy,
    /container_caps/
  )
  t.equal(
    explainExit(
      { exitCode: 1, oomKilled: false, lines: ['EACCES'] },
      { ...settings, containerCaps: 'standard' }
    ).remedy,
    'its last output says why'
  )
})

test('a memory limit is told in whole MiB', async t => {
  const reason = (memoryLimit: number): string =>
    explainExit({ exitCode: 137, oomKilled: true, lines: ['x'] }, { ...settings, memoryLimit }).reason
  t.match(reason(1.6 * 1024 * 1024), /its limit of 2 MiB$/)
  t.match(reason(1), /its limit of 0 MiB$/)
  t.match(reason(0), /than there is$/)
})
