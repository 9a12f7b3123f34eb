import { setTimeout as sleep } from 'node:timers/promises'
import { openPostgres } from '../../core/database/postgres.js'
import { JobRunner } from '../../core/jobs/job-runner.js'
import { runSingleton } from '../../core/jobs/singleton.js'
import { log } from '../database/database-kit.js'

// A process to be killed: takes the job shop:sell and the singleton shop.clock, says so, and never ends.
const [url = ''] = process.argv.slice(2)
const postgres = await openPostgres({ url, log })
const jobs = new JobRunner({ postgres, log })
const forever = async (): Promise<void> => {
  await sleep(600_000)
}
await jobs.add('shop', [
  {
    name: 'sell',
    lane: 'short',
    attempts: 3,
    timeoutMs: 600_000,
    run: async () => {
      console.log('job')
      await forever()
    }
  }
])
await jobs.start()
void runSingleton({
  postgres,
  name: 'shop.clock',
  signal: new AbortController().signal,
  log,
  run: async () => {
    console.log('singleton')
    await forever()
  }
})
