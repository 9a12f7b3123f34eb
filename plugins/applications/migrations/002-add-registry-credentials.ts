import type { Migration } from 'busbar/sdk'

export const addRegistryCredentials: Migration = {
  name: '002-add-registry-credentials',
  phase: 'expand',
  sql: `
    alter table $schema.application
      add column registry_username text,
      add column registry_password text,
      add constraint application_registry_account check ((registry_username is null) = (registry_password is null))
  `
}
