import { object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  retention_days: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 3650,
    description: 'Days a record is kept; 0 keeps all of them.'
  })
})
export type Settings = Static<typeof settings>
