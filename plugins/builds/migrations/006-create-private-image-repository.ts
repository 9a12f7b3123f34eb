import type { Migration } from 'busbar/sdk'

export const createPrivateImageRepository: Migration = {
  name: '006-create-private-image-repository',
  phase: 'expand',
  sql: `
    create table $schema.private_image_repository (
      image_id text not null,
      repository text not null,
      primary key (image_id, repository)
    );
  `
}
