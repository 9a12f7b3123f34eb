import type { Migration } from 'busbar/sdk'

export const addFailureTimes: Migration = {
  name: '005-add-failure-times',
  phase: 'expand',
  sql: `
    alter table $schema.application
      -- when its users were last told that its container has crashed, or does not pass its health check
      add column crash_told_at timestamptz(3),
      add column unhealthy_told_at timestamptz(3),
      -- when somebody last asked for a stop or a restart
      add column stop_asked_at timestamptz(3)
  `
}
