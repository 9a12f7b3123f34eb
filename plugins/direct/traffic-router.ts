import type { TrafficRouter } from 'busbar/api/deployments'
import { isProblem } from 'busbar/sdk'
import type { AddressService } from './address-service.js'

/** Direct addresses as deploys see them. */
export function createTrafficRouter(
  service: Pick<AddressService, 'open' | 'switchTo' | 'revert'>
): TrafficRouter {
  return {
    async prepare(applicationId) {
      try {
        await service.open(applicationId)
        return null
      } catch (error) {
        if (isOf(error, 'E_DIRECT_PORT_UNAVAILABLE')) return `No direct address: ${error.message}`
        throw error
      }
    },
    switchTo: async (applicationId, target) => await orNull(service.switchTo(applicationId, target)),
    revert: async (applicationId, target) => await orNull(service.revert(applicationId, target))
  }
}

/** Where an application has no port there is nothing to switch: `prepare` has said why. */
async function orNull<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work
  } catch (error) {
    if (isOf(error, 'E_DIRECT_NOT_OPEN')) return null
    throw error
  }
}

const isOf = (error: unknown, code: string): error is Error => isProblem(error) && error.code === code
