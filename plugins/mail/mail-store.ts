import type { Database, Tx } from 'busbar/sdk'

/** A message that waits; `content` is sealed. */
export interface StoredMessage {
  readonly id: string
  readonly content: string
  readonly expires_at: Date | null
  readonly created_at: Date
}

export class MailStore {
  constructor(private readonly db: Database) {}

  async insert(message: StoredMessage, tx: Tx): Promise<void> {
    await this.#messages(tx).insert(message)
  }

  async find(id: string): Promise<StoredMessage | undefined> {
    return await this.#messages().where({ id }).first('id', 'content', 'expires_at', 'created_at')
  }

  async delete(id: string): Promise<void> {
    await this.#messages().where({ id }).delete()
  }

  #messages(tx?: Tx) {
    return this.db.table<StoredMessage>('message', tx)
  }
}
