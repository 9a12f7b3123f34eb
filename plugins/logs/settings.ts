import { object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  retention_days: Type.Integer({
    minimum: 1,
    maximum: 3650,
    default: 7,
    description: 'How many days a line is kept'
  }),
  source_mib: Type.Integer({
    minimum: 0,
    maximum: 1_048_576,
    default: 512,
    description:
      'What is kept of one application or database at most, before it is compressed, MiB; the oldest lines go first; 0: no limit'
  })
})
export type Settings = Static<typeof settings>
