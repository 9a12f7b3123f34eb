import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  noPort: [503, 'E_DIRECT_PORT_UNAVAILABLE', 'the platform cannot listen on {address} for the direct address ({reason}); free that port, or set BUSBAR_DIRECT_HOST to an address of this machine'],
  notOpen: [409, 'E_DIRECT_NOT_OPEN', 'the application {applicationId} has no direct address yet; it gets one with its next deploy']
})
