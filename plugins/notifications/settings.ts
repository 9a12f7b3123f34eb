import { object, type Static, Type } from 'busbar/sdk'

export const settings = object({
  retention_days: Type.Integer({
    default: 90,
    minimum: 0,
    maximum: 3650,
    description: 'Days a notification is kept; 0 keeps them until their inbox is full.'
  })
})
export type Settings = Static<typeof settings>
