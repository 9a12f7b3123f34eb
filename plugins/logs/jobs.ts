import type { ScheduleDeclarer, SingletonDeclarer } from 'busbar/sdk'
import type { Logs } from './logs.js'

export function singletons(singleton: SingletonDeclarer<Logs>) {
  singleton({
    name: 'collector',
    run: async ({ signal }, { collector }) => {
      await collector.run(signal)
    }
  })
}

export function schedules(schedule: ScheduleDeclarer<Logs>) {
  schedule({
    name: 'retention',
    cron: '17 * * * *',
    missed: 'run-once',
    timeoutMs: 30 * 60_000,
    run: async ({ signal }, { retain }) => {
      await retain(signal)
    }
  })
}
