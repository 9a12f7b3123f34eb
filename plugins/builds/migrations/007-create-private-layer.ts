import type { Migration } from 'busbar/sdk'

export const createPrivateLayer: Migration = {
  name: '007-create-private-layer',
  phase: 'expand',
  // The holder is an application, or empty: everybody.
  sql: `
    create table $schema.private_layer (
      chain_id text not null,
      holder text not null,
      primary key (chain_id, holder)
    );
  `
}
