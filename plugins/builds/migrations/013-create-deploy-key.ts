import { applicationTable } from 'busbar/api/applications'
import type { Migration } from 'busbar/sdk'

/** The key of an application, and the keys by which it has come to know the hosts of its repository. */
export const createDeployKey: Migration = {
  name: '013-create-deploy-key',
  phase: 'expand',
  sql: `
    create table $schema.deploy_key (
      application_id uuid primary key references ${applicationTable.reference} on delete restrict,
      public_key text not null,
      private_key text not null,
      fingerprint text not null,
      created_at timestamptz(3) not null
    );
    create table $schema.host_key (
      application_id uuid not null references ${applicationTable.reference} on delete restrict,
      host text not null,
      key text not null,
      fingerprint text not null,
      recorded_at timestamptz(3) not null,
      primary key (application_id, host)
    );
  `
}
