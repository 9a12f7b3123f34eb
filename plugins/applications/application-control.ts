import type { ApplicationControl } from './api.js'
import type { ContainerControl } from './container-control.js'

/** What other plugins may do with the container of an application, see `ApplicationControl`. */
export const offeredControl = (
  control: Pick<ContainerControl, 'refusal' | 'stopServing' | 'startServing'>
): ApplicationControl => ({
  refusal: (applicationId, besides) => control.refusal(applicationId, besides),
  stop: applicationId => control.stopServing(applicationId),
  start: applicationId => control.startServing(applicationId)
})
