import type { Database, Tx } from 'busbar/sdk'

/** A message that waits; `content` is sealed. */
export interface StoredMessage {
  readonly id: string
  readonly content: string
  readonly expires_at: Date | null
  readonly created_at: Date
}

export interface MailStore {
  insert(message: StoredMessage, tx: Tx): Promise<void>
  find(id: string): Promise<StoredMessage | undefined>
  delete(id: string): Promise<void>
}

export function createMailStore (database: Database): MailStore {
  const messages = (tx?: Tx) => database.table<StoredMessage>('message', tx)
  return Object.freeze<MailStore>({
    async insert (message, tx) {
      await messages(tx).insert(message)
    },
    find: async id => await messages().where({ id }).first('id', 'content', 'expires_at', 'created_at'),
    async delete (id) {
      await messages().where({ id }).delete()
    }
  })
}
