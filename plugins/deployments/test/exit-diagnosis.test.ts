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
