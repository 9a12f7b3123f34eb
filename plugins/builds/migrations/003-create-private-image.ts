import type { Migration } from 'busbar/sdk'

export const createPrivateImage: Migration = {
  name: '003-create-private-image',
  phase: 'expand',
  // No reference to the application: an image outlives it, and does not become public by that.
  sql: `
    create table $schema.private_image (
      image_id text not null,
      application_id uuid not null,
      primary key (image_id, application_id)
    );
  `
}
