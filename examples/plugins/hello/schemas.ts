import { described, named, object, type Static, text, timestamp, uuid } from 'busbar/sdk'

export const greeting = named(
  'Greeting',
  object({
    id: described(uuid(), 'What the greeting is called.'),
    message: described(text({ max: 200 }), 'The words that were said.'),
    created_at: described(timestamp(), 'When they were said.')
  }),
  { description: 'A greeting that was said.' }
)
export type Greeting = Static<typeof greeting>

export const createBody = named(
  'CreateGreeting',
  object({ name: described(text({ min: 1, max: 100 }), 'Whom to greet, 1 to 100 characters.') }),
  { description: 'Whom to greet.', examples: [{ name: 'Ada' }] }
)
