import type { ScheduleDeclarer } from 'busbar/sdk'
import type { Certificates } from './certificates.js'

export function schedules(schedule: ScheduleDeclarer<Certificates>): void {
  schedule({
    name: 'expiry',
    cron: '11 * * * *',
    missed: 'run-once',
    attempts: 3,
    run: async (_context, { expiry }) => {
      await expiry.warn()
    }
  })
}
