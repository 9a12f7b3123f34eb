import { object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  retention_days: Type.Integer({
    default: 7,
    minimum: 0,
    maximum: 365,
    description: 'Days a request is kept; 0 keeps it until there are too many.'
  }),
  max_rows: Type.Integer({
    default: 1_000_000,
    minimum: 1_000,
    maximum: 50_000_000,
    description:
      'How many requests are kept at most, of all applications together; the oldest of whoever has most go first.'
  })
})
export type Settings = Static<typeof settings>
