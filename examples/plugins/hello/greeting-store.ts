import { countedRows, type Database, type Page, type Rows } from 'busbar/sdk'
import type { Greeting } from './schemas.js'

export interface GreetingStore {
  list(page: Page): Promise<Rows<Greeting>>
  insert(greeting: Greeting): Promise<void>
}

export function greetingStore(db: Database): GreetingStore {
  return {
    async list(page) {
      const rows = await db.sql<Greeting>(
        'select id, message, created_at from $schema.greeting order by created_at desc, id limit :limit offset :offset',
        { ...page }
      )
      return await countedRows(page, rows, () => db.sql('select count(*) as total from $schema.greeting'))
    },

    async insert(greeting) {
      await db.table<Greeting>('greeting').insert(greeting)
    }
  }
}
