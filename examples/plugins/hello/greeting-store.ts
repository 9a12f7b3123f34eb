import type { Database, Page } from 'busbar/sdk'
import type { Greeting } from './schemas.js'

export interface GreetingStore {
  list(page: Page): Promise<Greeting[]>
  insert(greeting: Greeting): Promise<void>
}

export function greetingStore (db: Database): GreetingStore {
  return {
    list: ({ limit, offset }) => db.sql<Greeting>(
      'select id, message, created_at from $schema.greeting order by created_at desc, id limit :limit offset :offset',
      { limit, offset }
    ),

    async insert (greeting) {
      await db.table<Greeting>('greeting').insert(greeting)
    }
  }
}
