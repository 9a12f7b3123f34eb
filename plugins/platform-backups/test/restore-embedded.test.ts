import { test } from 'tap'
import { ProgramLines } from '../../../lab/program-lines.js'
import { beginPlatform, busbar, ended } from './cli.js'
import { folder, looksAsBefore, original } from './original-platform.js'

test(
  'a platform is restored into the embedded server, from which it then starts',
  { timeout: 280_000 },
  async t => {
    const before = await original(t)
    await before.k.stop()
    const directory = await folder(t)
    const restored = await busbar(['restore', before.file], {
      directory,
      environment: { BUSBAR_RECOVERY_KEY: before.key }
    })
    t.equal(restored.code, 0, restored.stderr)
    const platform = beginPlatform({ directory })
    const over = ended(platform)
    t.teardown(async () => {
      platform.kill('SIGTERM')
      await over
    })
    if (platform.stdout === null) throw new Error('it says nothing')
    const line = await new ProgramLines(platform.stdout, 'the platform').next(
      'where it serves',
      one => one.includes(' serves http'),
      180_000
    )
    const url = /http:\/\/[\d.:]+/.exec(line)?.[0] ?? ''
    await looksAsBefore(t, before, url)
    const second = await busbar(['restore', before.file, '--replace'], {
      directory,
      environment: { BUSBAR_RECOVERY_KEY: before.key }
    })
    t.match(second, { code: 1, stderr: /in use by process/ }, 'not while it runs')
  }
)
