import type { Migration } from 'busbar/sdk'

/** `chain` and `private_key` are sealed. `warned` is the last state of its life that admins were told of. */
export const createCertificates: Migration = {
  name: '001-create-certificates',
  phase: 'expand',
  sql: `
    create table $schema.certificate (
      id uuid primary key,
      name text collate "C" not null unique,
      chain text not null,
      private_key text not null,
      issuer text not null,
      subjects text[] not null,
      not_before timestamptz(3) not null,
      not_after timestamptz(3) not null,
      warned text,
      created_at timestamptz(3) not null
    );
    create index certificate_subjects on $schema.certificate using gin (subjects);
    create index certificate_not_after on $schema.certificate (not_after);
  `
}
