import type { Migration } from 'busbar/sdk'

export const addBuildChoices: Migration = {
  name: '004-add-build-choices',
  phase: 'expand',
  sql: 'alter table $schema.application add column build_target text, add column build_platform text'
}
