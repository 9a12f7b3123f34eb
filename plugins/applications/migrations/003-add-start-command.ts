import type { Migration } from 'busbar/sdk'

export const addStartCommand: Migration = {
  name: '003-add-start-command',
  phase: 'expand',
  sql: 'alter table $schema.application add column start_command text'
}
