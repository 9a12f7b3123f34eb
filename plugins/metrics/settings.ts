import { fromEnvironment, maybe, object, type Static, Type } from 'busbar/sdk'
import { readBind } from './prometheus/bind-address.js'

/** Ten years. */
const longestRetentionHours = 87_600

export const settings = object({
  host_retention_hours: Type.Integer({
    default: 336,
    minimum: 1,
    maximum: longestRetentionHours,
    description: 'Hours for which figures of the machine are kept, the older the coarser.'
  }),
  application_retention_hours: Type.Integer({
    default: 336,
    minimum: 0,
    maximum: longestRetentionHours,
    description:
      'The same for applications; 0 keeps none, and then they are measured only while somebody looks at them.'
  }),
  bind: maybe(
    fromEnvironment(
      'METRICS_BIND',
      Type.String({ description: 'Where figures for Prometheus are served without a credential, as well' }),
      { takes: 'an address and a port, like 127.0.0.1:9100 or [::1]:9100', parse: readBind }
    )
  )
})
export type Settings = Static<typeof settings>
