import { object, type Static, text, timestamp, uuid } from 'busbar/sdk'

export const greeting = object({ id: uuid(), message: text({ max: 200 }), created_at: timestamp() })
export type Greeting = Static<typeof greeting>

export const createBody = object({ name: text({ min: 1, max: 100 }) })
