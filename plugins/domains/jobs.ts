import type { JobDeclarer, ScheduleDeclarer, SingletonDeclarer } from 'busbar/sdk'
import type { Domains } from './domains.js'

export const recheckJob = 'recheck'

export function jobs(job: JobDeclarer<Domains>): void {
  job({
    name: recheckJob,
    lane: 'short',
    attempts: 2,
    run: async (payload, _context, { checks }) => {
      await checks.check((payload as { readonly domainId: string }).domainId)
    }
  })
}

export function schedules(schedule: ScheduleDeclarer<Domains>): void {
  schedule({
    name: 'tls',
    cron: '* * * * *',
    run: async ({ signal }, { checks }) => {
      await checks.checkStale(signal)
    }
  })
}

export function singletons(singleton: SingletonDeclarer<Domains>): void {
  singleton({ name: 'container-watch', run: ({ signal }, { containers }) => containers.run(signal) })
}
