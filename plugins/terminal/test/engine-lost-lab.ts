import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import { requireSecondEngine, startSecondEngine } from '../../../lab/second-engine.js'
import { openTerminalLab } from './terminal-lab.js'

/** An engine is killed while a terminal is open, and comes back. With `liveRestore` containers outlive it. */
export async function losesEngine(t: Test, liveRestore: boolean): Promise<void> {
  if (!(await requireSecondEngine(t))) return
  const engine = await startSecondEngine({ images: ['busybox:lab'], liveRestore })
  t.teardown(async () => await engine.close())
  const lab = await openTerminalLab({ environment: engine.environment, docker: engine.docker })
  t.teardown(async () => await lab.k.close())
  const ann = await lab.k.as.session('ann')
  await lab.session(ann)
  const terminal = await lab.open(ann)
  terminal.type(`trap '' HUP; sleep 1001\n`)
  await lab.runs(/sleep 1001/)
  await engine.kill()
  t.equal((await terminal.closed()).code, 1000)
  t.match(terminal.frames.at(-1), { type: 'closed', reason: /^(engine-lost|container-stopped)$/ })
  t.match(await ann.post(`${lab.path}/terminal`), { status: 503, body: { code: 'E_ENGINE_UNREACHABLE' } })
  await engine.start()
  await until(
    async () => !(await lab.processes().catch(() => ['not yet'])).some(one => /sleep 1001|not yet/.test(one)),
    'the application runs, and nothing of the terminal',
    120_000
  )
  const again = await until(
    async () => await lab.open(ann).catch(() => undefined),
    'a terminal can be opened',
    60_000
  )
  again.type('echo back $((1 + 1)); exit\n')
  await again.closed()
  t.match(again.text, /back 2/)
  await until(
    async () => {
      const rows = await lab.k.query<{ id: string }>(
        'select id from terminal.session where opened_at is not null'
      )
      return rows.length === 0
    },
    'nothing is left of any that was opened',
    120_000
  )
  await lab.gone(/busbar-terminal/)
}
