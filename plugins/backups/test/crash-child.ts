import { createTestKernel } from 'busbar/sdk/testing'
import { type Probe, probePlugin } from './probe.js'

/** A platform in a process of its own, which stands still in the middle of its work until it is killed. */
const [, , given = '{}'] = process.argv
const { directory, databaseUrl, probeDirectory, stands } = JSON.parse(given) as Record<
  'directory' | 'databaseUrl' | 'probeDirectory',
  string
> & {
  /** Where it does; `outside`: it is somebody else who does. */
  readonly stands: 'in work' | 'exchanged' | 'serving' | 'behind a restore' | 'outside'
}
const never = new Promise<void>(() => {})
const inWork = stands === 'in work' ? never : null
const probe: Probe = {
  directory: probeDirectory,
  dumped: 0,
  calls: [],
  backupRefusal: null,
  refusalPasses: false,
  restoreRefusal: null,
  choiceRefusal: null,
  endError: null,
  failAfter: null,
  hold: inWork,
  holdRestore: inWork,
  holdCheck: inWork,
  holdExchanged: stands === 'exchanged' ? never : null,
  holdServing: stands === 'serving' ? never : null,
  isExchanged: false,
  isUndone: false,
  settleError: null,
  holdSettle: stands === 'behind a restore' ? never : null,
  restoreError: null,
  free: null,
  beside: false,
  rows: null,
  checkError: null,
  engine: 'postgres',
  databases: [],
  ended: new Set()
}
await createTestKernel({
  state: { directory, database: { url: databaseUrl, drop: async () => {} } },
  inline: [probePlugin(probe)]
})
process.stdout.write('ready\n')
const timer = setInterval(() => {
  if (probe.calls.length > 0) process.stdout.write(`${probe.calls.splice(0).join('\n')}\n`)
}, 50)
timer.ref()
