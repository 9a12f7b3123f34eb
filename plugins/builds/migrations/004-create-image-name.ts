import type { Migration } from 'busbar/sdk'

export const createImageName: Migration = {
  name: '004-create-image-name',
  phase: 'expand',
  sql: `
    create table $schema.image_name (
      application_id uuid primary key,
      token text not null
    );
  `
}
