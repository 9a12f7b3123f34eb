import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

test('code of a third-party plugin does not end the process, the platform does', async t => {
  const child = fork(fileURLToPath(new URL('process-end-process.ts', import.meta.url)), {
    signal: AbortSignal.timeout(60_000)
  })
  t.teardown(() => child.kill())
  child.on('error', () => {})
  const exited = once(child, 'exit')
  const [outcomes] = (await Promise.race([once(child, 'message'), exited])) as [
    Readonly<Record<string, string>>
  ]
  const refused = (call: string) =>
    `${call} was called by the plugin "ending": it would end the platform. Throw an error instead`
  t.same(outcomes, {
    exit: refused('process.exit(3)'),
    abort: refused('process.abort()'),
    kill: refused(`process.kill(${child.pid}, SIGKILL)`),
    later: refused('process.exit(3)'),
    deep: refused('process.exit(3)'),
    look: 'true',
    once: 'true'
  })
  t.equal((await exited)[0], 7)
})
