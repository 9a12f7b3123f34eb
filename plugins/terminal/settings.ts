import { fromEnvironment, object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  max_sessions_per_user: fromEnvironment(
    'MAX_TERMINAL_SESSIONS_PER_USER',
    Type.Integer({
      minimum: 1,
      maximum: 1000,
      default: 5,
      description: 'How many sessions a user may have at a time'
    })
  ),
  idle_minutes: Type.Integer({
    minimum: 1,
    maximum: 10_080,
    default: 30,
    description: 'How long a session may go on in which nothing is typed and nothing written'
  })
})
export type Settings = Static<typeof settings>
