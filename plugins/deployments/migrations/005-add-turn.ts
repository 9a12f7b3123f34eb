import type { Migration } from 'busbar/sdk'

/** When its turn came among those of its owner; null while it waits for that. */
export const addTurn: Migration = {
  name: '005-add-turn',
  phase: 'expand',
  sql: `
    alter table $schema.deployment add column begun_at timestamptz(3);
    create index deployment_under_way on $schema.deployment (project_id) where status in ('pending', 'building', 'deploying')`
}
