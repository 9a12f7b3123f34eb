import type { Migration } from 'busbar/sdk'

export const addSignsOfLife: Migration = {
  name: '002-add-signs-of-life',
  phase: 'expand',
  sql: `
    -- When a run, or a drill, was last seen to be worked at; null before that.
    alter table $schema.backup add column seen_at timestamptz(3);
    alter table $schema.backup add column proof_seen_at timestamptz(3);
    alter table $schema.restore add column seen_at timestamptz(3);
    create index backup_proving on $schema.backup (id) where proof = 'running';
    -- Host and bucket of what is in the bucket of the platform, which may be another one by now; null: not known.
    alter table $schema.backup add column platform_place text;
  `
}
