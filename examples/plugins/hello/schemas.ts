import { list, object, pagingQuery, text, timestamp, uuid, type Static } from 'busbar/sdk'

export const greeting = object({ id: uuid(), message: text({ max: 200 }), created_at: timestamp() })
export type Greeting = Static<typeof greeting>

export const greetings = list(greeting)
export const listQuery = object(pagingQuery)
export const createBody = object({ name: text({ min: 1, max: 100 }) })
